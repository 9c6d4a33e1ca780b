// Classification trees on ranked features: growing one, asking the trees of a forest as they grow, and following queries
// through the trees that would have been grown without single records. The twins in numpy are in training/trees.py and
// training/engines/trees.py.
//
// A score depends on the counts alone, and on nothing that a compiler may do. That of our own trees is one fraction of
// whole numbers, both exact in double precision up to 330,000 records: splits that are equally good have equal scores.
// Those of scikit-learn's are computed as scikit-learn does, so that rounding parts the same splits there and here.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "splitting.hpp"

namespace {

// More than any of the numbers that are counted side by side in one.
constexpr std::uint64_t FIELD = std::uint64_t{1} << 21;

constexpr double IMPOSSIBLE = -std::numeric_limits<double>::infinity();

// The number at a place of the stream of a key: splitmix64 (Steele, Lea and Flood 2014).
std::uint64_t drawn(std::uint64_t key, std::uint64_t place) {
    std::uint64_t z = key + 0x9E3779B97F4A7C15ULL * (place + 1);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

enum Criterion : std::int64_t { FRACTION, GINI, ENTROPY };

// How pure a split is, from the sums of squared counts of the classes and the totals on both sides.
double score(double squares_left, double n_left, double squares_right, double n_right) {
    return (squares_left * n_right + squares_right * n_left) / (n_left * n_right);
}

// The same as scikit-learn rounds it: less the impurity of both sides, by their totals.
double gini(double squares_left, double n_left, double squares_right, double n_right) {
    return -n_right * (1.0 - squares_right / (n_right * n_right)) - n_left * (1.0 - squares_left / (n_left * n_left));
}

template <typename Code>
struct Sample {
    std::int64_t n_rows, n_columns, n_classes;
    const Code* codes;            // [rows, columns]
    const std::int32_t* n_bins;   // [columns]
    const float* values;          // what each code of each column stands for, ascending
    const std::int32_t* labels;   // [rows]
    const double* terms;          // [total weight + 1]: what a class that counts so often adds to the entropy
    const std::int32_t* weights;  // [rows]: how often each record counts
    const Code* by_column = nullptr;  // the codes once more [columns, rows], where many trees are grown on them

    const Code* row(std::int64_t i) const { return codes + i * n_columns; }

    std::vector<std::int32_t> rows_of_weight() const {
        std::vector<std::int32_t> rows;
        for (std::int64_t i = 0; i < n_rows; ++i)
            if (weights[i] > 0) rows.push_back(static_cast<std::int32_t>(i));
        return rows;
    }

    std::vector<std::int64_t> class_counts(const std::int32_t* rows, std::int64_t n) const {
        std::vector<std::int64_t> counts(n_classes, 0);
        for (std::int64_t i = 0; i < n; ++i) counts[labels[rows[i]]] += weights[rows[i]];
        return counts;
    }
};

// A table of codes [rows, columns] column by column. What is looked at of many records in one column stays in the cache.
template <typename Code>
std::vector<Code> by_column(const Code* codes, std::int64_t n_rows, std::int64_t n_columns) {
    constexpr std::int64_t BLOCK = 64;
    std::vector<Code> turned(n_rows * n_columns);
    for (std::int64_t first = 0; first < n_rows; first += BLOCK)
        for (std::int64_t j = 0; j < n_columns; ++j)
            for (std::int64_t i = first; i < std::min(first + BLOCK, n_rows); ++i)
                turned[j * n_rows + i] = codes[i * n_columns + j];
    return turned;
}

// See `Rules` in training/trees.py; all are whole numbers, so that they come as one array.
struct Rules {
    std::int64_t max_features, max_depth, min_samples_split, min_samples_leaf, criterion;
    std::int64_t looks_on, drawn_ties, sizes_by_record, drawn_thresholds;

    // Whether a node of so many records with these counts is a leaf for certain.
    bool ends(const std::vector<std::int64_t>& counts, std::size_t n_records, std::int64_t depth) const {
        const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
        const std::int64_t size = sizes_by_record ? static_cast<std::int64_t>(n_records) : total;
        return depth >= max_depth || size < min_samples_split ||
               *std::max_element(counts.begin(), counts.end()) == total;
    }
};

struct Split {
    std::int32_t column = -1;  // -1: a leaf
    std::int32_t bin = 0;      // records with a code of at most this go left
};

// What a node's records look like in the columns that it may split at, batch by batch of columns: first as many as the
// rules say, then one after the other, until one can be split.
template <typename Code>
class Node {
  public:
    Node(const Sample<Code>& sample, const Rules& rules)
        : sample_(sample), rules_(rules), first_bin_(sample.n_columns + 1, 0), order_(sample.n_columns) {
        for (std::int64_t j = 0; j < sample.n_columns; ++j) first_bin_[j + 1] = first_bin_[j] + sample.n_bins[j];
        const std::int64_t n_slots = std::min(rules.max_features, sample.n_columns);
        most_ = *std::max_element(sample.n_bins, sample.n_bins + sample.n_columns);
        n_words_ = (most_ + 63) / 64;
        n_pages_ = (n_words_ + 63) / 64;
        capacity_ = n_slots * most_;
        counts_.assign(capacity_ * sample.n_classes, 0);
        records_.assign(capacity_, 0);
        filled_.assign(n_slots * n_words_, 0);
        pages_.assign(n_slots * n_pages_, 0);
        entry_.resize(capacity_);
        bin_.resize(capacity_);
        lowest_.resize(capacity_);
        for (auto* part : {&best_, &below_, &records_below_, &squares_below_, &squares_above_, &if_left_, &if_right_})
            part->resize(capacity_);
        left_.resize(capacity_ * sample.n_classes);
        std::iota(order_.begin(), order_.end(), 0);
    }

    void open(const std::int32_t* rows, std::int64_t n, const std::vector<std::int64_t>& totals, std::uint64_t key) {
        while (!swaps_.empty()) {  // the columns in their own order again
            std::swap(order_[swaps_.back().first], order_[swaps_.back().second]);
            swaps_.pop_back();
        }
        rows_ = rows;
        n_ = n;
        totals_ = &totals;
        total_ = static_cast<double>(std::accumulate(totals.begin(), totals.end(), std::int64_t{0}));
        key_ = key;
        taken_ = 0;
        varies_ = false;
        packed_.clear();
    }

    // Takes the next batch of columns into consideration; false when there is none.
    bool next() {
        if (varies_ && !rules_.looks_on) return false;
        const std::int64_t wanted = std::min(taken_ ? taken_ + 1 : rules_.max_features, sample_.n_columns);
        if (wanted == taken_) return false;
        draw(taken_, wanted);
        batch_.assign(order_.begin() + taken_, order_.begin() + wanted);
        if (!rules_.drawn_ties) std::sort(batch_.begin(), batch_.end());
        taken_ = wanted;
        if (rules_.drawn_thresholds) {
            draw_splits();
        } else {
            count();
            tabulate();
        }
        add_up();
        return true;
    }

    // The score of every split of the batch, when `weight` records of class `label` on either side of it are left out.
    void leave_out(std::int32_t label, std::int32_t weight) {
        const double least = static_cast<double>(rules_.min_samples_leaf), w = weight;
        const double* own = left_.data() + label * capacity_;
        const double own_total = static_cast<double>((*totals_)[label]);
        const std::int64_t n = n_entries_;
        for (std::int64_t e = 0; e < n; ++e) {
            const double nl = below_[e], nr = total_ - nl, sl = squares_below_[e], sr = squares_above_[e];
            const double l = own[e], r = own_total - l;
            const double without_left = score(sl - 2 * w * l + w * w, nl - w, sr, nr);
            const double without_right = score(sl, nl, sr - 2 * w * r + w * w, nr - w);
            if_left_[e] = nl - w >= least && nr >= least ? without_left : IMPOSSIBLE;
            if_right_[e] = nl >= least && nr - w >= least ? without_right : IMPOSSIBLE;
        }
    }

    // For each column and code of the record left out, the best score of the column: what is below its code holds it
    // on the right side, the other splits on the left.
    void summarise() {
        std::int64_t first = 0;
        for (std::size_t s = 0; s < batch_.size(); ++s) {
            const std::int64_t end = ends_[s];
            double* best = best_.data() + s * most_;
            double top = IMPOSSIBLE;
            for (std::int64_t e = end - 1; e >= first; --e) {
                best[bin_[e]] = top = std::max(top, if_left_[e]);
                entry_[s * most_ + bin_[e]] = e;
            }
            top = IMPOSSIBLE;
            for (std::int64_t e = first; e < end; top = std::max(top, if_right_[e]), ++e)
                best[bin_[e]] = std::max(best[bin_[e]], top);
            first = end;
        }
    }

    // The best split without the record that has these codes; the first one of equals.
    Split best(const Code* codes, std::int32_t weight) const {
        double top = IMPOSSIBLE;
        std::size_t found = batch_.size();
        for (std::size_t s = 0; s < batch_.size(); ++s) {
            const double score = best_[s * most_ + codes[batch_[s]]];
            if (score > top) top = score, found = s;
        }
        if (found == batch_.size()) return {};
        const std::int32_t column = batch_[found];
        return {column, within(found, entry_[found * most_ + codes[column]], weight)};
    }

    // The best split of all records, the first one of equals; `below` becomes the counts of the classes on its left.
    Split best(std::vector<std::int64_t>& below) {
        rate();
        std::int64_t top = -1;
        double highest = IMPOSSIBLE;
        const std::int64_t n = n_entries_;
        for (std::int64_t e = 0; e < n; ++e)
            if (if_left_[e] > highest) highest = if_left_[e], top = e;
        if (top < 0) return {};
        for (std::size_t c = 0; c < below.size(); ++c)
            below[c] = static_cast<std::int64_t>(left_[c * capacity_ + top]);
        const std::int32_t column = batch_[std::upper_bound(ends_.begin(), ends_.end(), top) - ends_.begin()];
        if (rules_.drawn_thresholds || counted_at_once(column)) return {column, bin_[top]};
        return {column, between(column, bin_[top], lowest_[top + 1])};
    }

  private:
    void draw(std::int64_t from, std::int64_t to) {
        if (rules_.max_features >= sample_.n_columns && !rules_.drawn_ties) return;
        for (std::int64_t i = from; i < to; ++i) {
            const std::uint64_t left = static_cast<std::uint64_t>(sample_.n_columns - i);
            const std::int64_t other = i + static_cast<std::int64_t>(((drawn(key_, i) >> 32) * left) >> 32);
            std::swap(order_[i], order_[other]);
            swaps_.emplace_back(i, other);
        }
    }

    // The score of every split of the batch, of all records.
    void rate() {
        const double least = static_cast<double>(rules_.min_samples_leaf);
        const std::int64_t n = n_entries_;
        const double *below = below_.data(), *sizes = by_record() ? records_below_.data() : below;
        const double *squares_below = squares_below_.data(), *squares_above = squares_above_.data();
        double* const scores = if_left_.data();
        const double total = total_, size = by_record() ? static_cast<double>(n_) : total_;
        const auto rated = [&](const auto& scored) {
            for (std::int64_t e = 0; e < n; ++e) {
                const double found = scored(squares_below[e], below[e], squares_above[e], total - below[e]);
                scores[e] = sizes[e] >= least && size - sizes[e] >= least ? found : IMPOSSIBLE;
            }
        };
        if (rules_.criterion == FRACTION) rated(score);
        if (rules_.criterion == GINI) rated(gini);
        if (rules_.criterion == ENTROPY)
            rated([&](double sl, double nl, double sr, double nr) {
                return (sl - sample_.terms[static_cast<std::int64_t>(nl)]) +
                       (sr - sample_.terms[static_cast<std::int64_t>(nr)]);
            });
    }

    // Where each entry has one record at least, leaves of one are no restriction.
    bool by_record() const { return rules_.sizes_by_record && rules_.min_samples_leaf > 1; }

    // The code up to which records go left, where nobody is between two codes of a column.
    std::int32_t between(std::int32_t column, std::int32_t low, std::int32_t high) const {
        return code_between(sample_.values + first_bin_[column], low, high);
    }

    // An entry for one threshold of each column of the batch, drawn between its lowest and its highest value.
    void draw_splits() {
        const std::int64_t n = n_;
        n_entries_ = 0;
        ends_.clear();
        for (auto* part : {&labels_, &weights_, &held_}) part->resize(n);
        for (std::int64_t i = 0; i < n; ++i) {
            labels_[i] = sample_.labels[rows_[i]];
            weights_[i] = sample_.weights[rows_[i]];
        }
        std::int32_t* const held = held_.data();
        for (const std::int32_t j : batch_) {
            std::int32_t low = std::numeric_limits<std::int32_t>::max(), high = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int32_t code = sample_.row(rows_[i])[j];
                held[i] = code;
                low = std::min(low, code);
                high = std::max(high, code);
            }
            const float* values = sample_.values + first_bin_[j];
            if (values[high] > values[low] + NEAR) {
                const double share = static_cast<double>(drawn(key_, sample_.n_columns + 2 + j) >> 11) * 0x1p-53;
                const double reach = static_cast<double>(values[high]) - values[low];
                const double threshold = reach * share + values[low];
                const float* bound = std::upper_bound(values + low, values + high, threshold);
                enter(std::max(low, static_cast<std::int32_t>(bound - values) - 1));
                varies_ = true;
            }
            ends_.push_back(n_entries_);
        }
    }

    // An entry of the records whose codes of the column at hand are at most this one.
    void enter(std::int32_t code) {
        const std::int64_t n = n_, stride = capacity_, e = n_entries_++;
        const std::int32_t *labels = labels_.data(), *weights = weights_.data(), *held = held_.data();
        std::int32_t records = 0;
        if (sample_.n_classes == 2) {  // two sums that a compiler can find for many records at once
            std::int32_t both = 0, second = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                const std::int32_t left = -static_cast<std::int32_t>(held[i] <= code);
                both += weights[i] & left;
                second += weights[i] & -labels[i] & left;
                records -= left;
            }
            left_[e] = both - second;
            left_[stride + e] = second;
        } else {
            running_.assign(2 * sample_.n_classes, 0);  // of each class on the right and on the left
            for (std::int64_t i = 0; i < n; ++i) {
                const bool left = held[i] <= code;
                running_[2 * labels[i] + left] += weights[i];
                records += left;
            }
            for (std::int64_t c = 0; c < sample_.n_classes; ++c)
                left_[c * stride + e] = static_cast<double>(running_[2 * c + 1]);
        }
        bin_[e] = code;
        records_below_[e] = records;
    }

    // The sums over the classes on both sides of every entry.
    void add_up() {
        const std::int64_t n = n_entries_;
        for (auto* part : {&below_, &squares_below_, &squares_above_}) std::fill_n(part->begin(), n, 0.0);
        for (std::int64_t c = 0; c < sample_.n_classes; ++c) {
            const double* left = left_.data() + c * capacity_;
            const double total = static_cast<double>((*totals_)[c]);
            const auto add = [&](const auto& term) {
                double *below = below_.data(), *squares_below = squares_below_.data(), *above = squares_above_.data();
                for (std::int64_t e = 0; e < n; ++e) {
                    below[e] += left[e];
                    squares_below[e] += term(left[e]);
                    above[e] += term(total - left[e]);
                }
            };
            if (rules_.criterion == ENTROPY)
                add([&](double counted) { return sample_.terms[static_cast<std::int64_t>(counted)]; });
            else
                add([](double counted) { return counted * counted; });
        }
    }

    struct Column {
        std::int32_t index;
        std::int32_t *counts, *records;  // of its bins
        std::uint64_t *filled, *pages;
    };

    Column column(std::int64_t slot) {
        return {batch_[slot], counts_.data() + slot * most_ * sample_.n_classes, records_.data() + slot * most_,
                filled_.data() + slot * n_words_, pages_.data() + slot * n_pages_};
    }

    void count() {
        const std::int64_t k = sample_.n_classes;
        const bool records = by_record();
        columns_.clear();
        for (std::size_t slot = 0; slot < batch_.size(); ++slot)
            if (!counted_at_once(batch_[slot])) columns_.push_back(column(slot));
        if (columns_.empty()) return;
        for (std::int64_t i = 0; i < n_; ++i) {
            const Code* codes = sample_.row(rows_[i]);
            const std::int32_t weight = sample_.weights[rows_[i]], label = sample_.labels[rows_[i]];
            for (const Column& column : columns_) {
                const std::int64_t code = codes[column.index];
                column.counts[code * k + label] += weight;
                if (records) ++column.records[code];
                column.filled[code >> 6] |= std::uint64_t{1} << (code & 63);
                column.pages[code >> 12] |= std::uint64_t{1} << ((code >> 6) & 63);
            }
        }
    }

    // Whether a column is looked at by itself: of at most two codes, where the table is at hand column by column.
    bool counted_at_once(std::int32_t column) const {
        return sample_.by_column && sample_.n_bins[column] <= 2 && total_ < static_cast<double>(FIELD);
    }

    // An entry of the first of two codes, if the node holds records of both and their values are not as good as equal.
    void enter_first(std::int32_t column) {
        const float* const values = sample_.values + first_bin_[column];
        if (sample_.n_bins[column] < 2 || !(values[1] > values[0] + NEAR)) return;
        const std::int64_t k = sample_.n_classes;
        running_.assign(k, 0);
        const std::int64_t records = count_second(sample_.by_column + column * sample_.n_rows, running_.data());
        if (records == 0 || records == n_) return;
        const std::int64_t e = n_entries_++;
        for (std::int64_t c = 0; c < k; ++c)
            left_[c * capacity_ + e] = static_cast<double>((*totals_)[c] - running_[c]);
        bin_[e] = 0;
        records_below_[e] = static_cast<double>(n_ - records);
        varies_ = true;
    }

    // Adds the weight of each class among the node's records that have a code other than 0; returns how many these are.
    std::int64_t count_second(const Code* codes, std::int64_t* counts) {
        const std::int64_t n = n_;
        const std::int32_t* const rows = rows_;
        if (sample_.n_classes == 2) {  // records, their weight, and that of the second class, side by side in one number
            if (packed_.empty())
                for (std::int64_t i = 0; i < n; ++i) {
                    const std::uint64_t weight = sample_.weights[rows[i]];
                    packed_.push_back(FIELD * FIELD + FIELD * weight + weight * sample_.labels[rows[i]]);
                }
            const std::uint64_t* const packed = packed_.data();
            std::uint64_t sum = 0;
            for (std::int64_t i = 0; i < n; ++i) sum += packed[i] & -static_cast<std::uint64_t>(codes[rows[i]]);
            counts[1] = static_cast<std::int64_t>(sum % FIELD);
            counts[0] = static_cast<std::int64_t>(sum / FIELD % FIELD) - counts[1];
            return static_cast<std::int64_t>(sum / (FIELD * FIELD));
        }
        std::int64_t records = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            if (!codes[rows[i]]) continue;
            counts[sample_.labels[rows[i]]] += sample_.weights[rows[i]];
            ++records;
        }
        return records;
    }

    // Turns the counts into an entry for each bin that is not empty, and clears them. Bins whose values are as good as
    // equal are one entry.
    void tabulate() {
        ends_.clear();
        n_entries_ = 0;
        auto column = columns_.begin();
        for (const std::int32_t j : batch_) {
            if (counted_at_once(j)) {
                enter_first(j);
            } else {
                const std::int64_t before = n_entries_;
                n_entries_ = sample_.n_classes == 2 ? entered<2>(*column) : entered<0>(*column);
                const float* const values = sample_.values + first_bin_[j];
                varies_ |= values[bin_[n_entries_ - 1]] > values[lowest_[before]] + NEAR;
                ++column;
            }
            ends_.push_back(n_entries_);
        }
    }

    // How many entries there are with those of one column, for K classes (0: as many as there are).
    template <int K>
    std::int64_t entered(const Column& column) {
        const std::int64_t k = K ? K : sample_.n_classes, stride = capacity_;
        const bool by_records = by_record();
        const float* const values = sample_.values + first_bin_[column.index];
        std::int32_t *const lowest = lowest_.data(), *const highest = bin_.data();
        double* const left = left_.data();
        std::int64_t few[K ? K : 1] = {}, records = 0;
        running_.assign(k, 0);
        std::int64_t* const running = K ? few : running_.data();
        std::int64_t e = n_entries_ - 1;
        float last = -std::numeric_limits<float>::infinity();
        for (std::int64_t page = 0; page < n_pages_; ++page) {
            for (std::uint64_t words = std::exchange(column.pages[page], 0); words; words &= words - 1) {
                const std::int64_t word = 64 * page + __builtin_ctzll(words);
                for (std::uint64_t bits = std::exchange(column.filled[word], 0); bits; bits &= bits - 1) {
                    const std::int64_t bin = 64 * word + __builtin_ctzll(bits);
                    if (values[bin] > last + NEAR) lowest[++e] = static_cast<std::int32_t>(bin);
                    last = values[bin];
                    highest[e] = static_cast<std::int32_t>(bin);
                    for (std::int64_t c = 0; c < k; ++c) {
                        running[c] += std::exchange(column.counts[bin * k + c], 0);
                        left[c * stride + e] = static_cast<double>(running[c]);
                    }
                    if (by_records) {
                        records += std::exchange(column.records[bin], 0);
                        records_below_[e] = static_cast<double>(records);
                    }
                }
            }
        }
        return e + 1;
    }

    // Where the column of one place in the batch is split: the first best entry, then the middle of the empty bins.
    std::int32_t within(std::size_t s, std::int64_t own, std::int32_t weight) const {
        const std::int64_t first = s ? ends_[s - 1] : 0;
        double top = IMPOSSIBLE;
        std::int64_t split = first;
        for (std::int64_t e = first; e < ends_[s]; ++e) {
            const double score = e >= own ? if_left_[e] : if_right_[e];
            if (score > top) top = score, split = e;
        }
        std::int64_t next = split + 1;
        if (next == own && below_[next] - below_[split] == weight) ++next;  // nobody is left in that bin
        return between(batch_[s], bin_[split], lowest_[next]);
    }

    const Sample<Code>& sample_;
    const Rules& rules_;
    const std::int32_t* rows_ = nullptr;
    std::int64_t n_ = 0, taken_ = 0, n_entries_ = 0;
    double total_ = 0;
    bool varies_ = false;  // whether the lowest and the highest value of a column are told apart
    std::uint64_t key_ = 0;
    const std::vector<std::int64_t>* totals_ = nullptr;
    std::vector<std::int64_t> first_bin_;           // [columns + 1]: where each column's values begin
    std::vector<std::int32_t> order_, batch_;       // columns
    std::vector<Column> columns_;                   // of the batch, but those that are looked at by themselves
    std::vector<std::uint64_t> packed_;             // of the records of the node
    std::vector<std::int32_t> labels_, weights_;    // of the records of the node
    std::vector<std::int32_t> held_;                // their codes of a column
    std::vector<std::pair<std::int64_t, std::int64_t>> swaps_;
    std::vector<std::int32_t> counts_, records_;    // [bins, classes] and [bins], zero between nodes
    std::int64_t most_ = 0, capacity_ = 0;          // bins of a column, and of a batch of columns, at the most
    std::int64_t n_words_ = 0, n_pages_ = 0;
    std::vector<std::uint64_t> filled_, pages_;     // which bins of a column are not empty, and which of these words
    std::vector<std::int64_t> entry_;               // [bins]
    std::vector<double> best_;                      // [bins]
    std::vector<std::int32_t> bin_, lowest_;        // the last and the first bin of each entry
    std::vector<double> below_, records_below_, left_;   // counts up to and including each entry
    std::vector<double> squares_below_, squares_above_;  // sums of squares, or of terms of the entropy
    std::vector<double> if_left_, if_right_;        // scores
    std::vector<std::int64_t> ends_, running_;      // where the entries of each column of the batch end
};

// Grows a tree level by level. `reached(totals, split)` is told of every node and answers which of the two nodes below
// are wanted; nodes are told of in the order in which they were wanted.
template <typename Code, typename Reached>
void grow(const Sample<Code>& sample, const Rules& rules, Node<Code>& node, std::uint64_t key, Reached reached) {
    struct Open {
        std::int64_t begin, end, depth;
        std::uint64_t key;
        std::vector<std::int64_t> totals;
    };
    std::vector<std::int32_t> rows = sample.rows_of_weight();
    const std::int64_t n = static_cast<std::int64_t>(rows.size());
    std::vector<Open> nodes{{0, n, 0, key, sample.class_counts(rows.data(), n)}};
    std::vector<std::int64_t> below(sample.n_classes), above(sample.n_classes);
    for (std::size_t id = 0; id < nodes.size(); ++id) {
        const Open at = std::move(nodes[id]);
        std::int32_t* const begin = rows.data() + at.begin;
        Split split;
        if (!rules.ends(at.totals, at.end - at.begin, at.depth)) {
            node.open(begin, at.end - at.begin, at.totals, at.key);
            while (split.column < 0 && node.next()) split = node.best(below);
        }
        const auto [left, right] = reached(at.totals, split);
        if (split.column < 0) continue;
        const auto goes_left = [&](std::int32_t i) {
            const Code code = sample.by_column ? sample.by_column[split.column * sample.n_rows + i] : sample.row(i)[split.column];
            return code <= split.bin;
        };
        const std::int64_t middle = std::partition(begin, rows.data() + at.end, goes_left) - rows.data();
        for (std::size_t c = 0; c < below.size(); ++c) above[c] = at.totals[c] - below[c];
        if (left) nodes.push_back({at.begin, middle, at.depth + 1, drawn(at.key, sample.n_columns), below});
        if (right) nodes.push_back({middle, at.end, at.depth + 1, drawn(at.key, sample.n_columns + 1), above});
    }
}

void add_shares(const std::vector<std::int64_t>& counts, double* answer) {
    const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    for (std::size_t c = 0; c < counts.size(); ++c)
        answer[c] += total ? static_cast<double>(counts[c]) / static_cast<double>(total) : 1.0 / counts.size();
}

// Adds to the answers [queries, classes] the class shares of the leaves that queries [columns, queries] reach in a tree of
// which only the nodes on their way are grown.
template <typename Code>
void ask(const Sample<Code>& sample, const Rules& rules, Node<Code>& node, std::uint64_t key, std::int64_t n_queries,
         const Code* asked, double* answers) {
    std::vector<std::int32_t> queries(n_queries);
    std::iota(queries.begin(), queries.end(), 0);
    std::vector<std::pair<std::int64_t, std::int64_t>> parts{{0, n_queries}};
    std::size_t id = 0;
    grow(sample, rules, node, key, [&](const std::vector<std::int64_t>& totals, Split split) {
        const auto [begin, end] = parts[id++];
        if (split.column < 0) {
            for (std::int64_t i = begin; i < end; ++i) add_shares(totals, answers + queries[i] * sample.n_classes);
            return std::make_pair(false, false);
        }
        const Code* const codes = asked + split.column * n_queries;
        const auto goes_left = [&](std::int32_t q) { return codes[q] <= split.bin; };
        const auto first = queries.begin();
        const std::int64_t middle = std::partition(first + begin, first + end, goes_left) - first;
        if (begin < middle) parts.emplace_back(begin, middle);
        if (middle < end) parts.emplace_back(middle, end);
        return std::make_pair(begin < middle, middle < end);
    });
}

// As many draws with replacement from a pool, each from a stream of its own of rows: how often each row was drawn. A row is
// accepted with a probability in units of 2^-32. Where one is accepted no more the draws change that held it, and no others.
void draw_bag(const std::uint64_t* accepted, std::int64_t n_rows, std::int64_t n_draws, std::uint64_t key,
              std::int32_t* weights) {
    std::fill(weights, weights + n_rows, 0);
    for (std::int64_t draw = 0; draw < n_draws; ++draw) {
        const std::uint64_t stream = drawn(key, draw);
        for (std::uint64_t place = 0;; ++place) {
            const std::uint64_t chance = drawn(stream, place);
            const std::uint64_t row = ((chance >> 32) * static_cast<std::uint64_t>(n_rows)) >> 32;
            if ((chance & 0xFFFFFFFFULL) >= accepted[row]) continue;
            ++weights[row];
            break;
        }
    }
}

template <typename Code>
void walk(const Sample<Code>& sample, const Rules& rules, std::uint64_t key, std::int64_t n_items,
          const std::int32_t* removed, const std::int32_t* query, const Code* asked, double* answers) {
    struct Open {
        std::vector<std::int32_t> rows, items;
        std::int64_t depth;
        std::uint64_t key;
    };
    const std::int64_t k = sample.n_classes;
    std::vector<std::int32_t> gone(removed, removed + n_items);  // who is left out of the node an item is at, or -1
    for (std::int32_t& row : gone)
        if (row >= 0 && sample.weights[row] == 0) row = -1;
    const auto sort_of = [&](std::int32_t item) {
        const std::int32_t row = gone[item];
        return row < 0 ? std::make_pair(0, 0) : std::make_pair(sample.labels[row], sample.weights[row]);
    };
    Node<Code> node(sample, rules);
    std::vector<Open> waiting(1);
    waiting[0].rows = sample.rows_of_weight();
    waiting[0].items.resize(n_items);
    std::iota(waiting[0].items.begin(), waiting[0].items.end(), 0);
    waiting[0].depth = 0;
    waiting[0].key = key;
    std::vector<std::tuple<std::int32_t, std::int32_t, bool, std::int32_t>> moves;  // column, bin, right, item
    std::vector<std::int32_t> undecided, still;
    std::vector<std::int64_t> below(k);
    while (!waiting.empty()) {
        Open at = std::move(waiting.back());
        waiting.pop_back();
        const std::vector<std::int64_t> totals = sample.class_counts(at.rows.data(), at.rows.size());
        moves.clear();
        undecided.clear();
        const auto left_over = [&](std::int32_t item) {
            std::vector<std::int64_t> counts = totals;
            if (gone[item] >= 0) counts[sample.labels[gone[item]]] -= sample.weights[gone[item]];
            return counts;
        };
        std::sort(at.items.begin(), at.items.end(), [&](std::int32_t a, std::int32_t b) {
            return std::make_pair(sort_of(a), a) < std::make_pair(sort_of(b), b);
        });
        for (auto first = at.items.begin(); first != at.items.end();) {
            const auto sort = sort_of(*first);
            const auto last = std::find_if(first, at.items.end(), [&](std::int32_t i) { return sort_of(i) != sort; });
            const std::vector<std::int64_t> counts = left_over(*first);
            if (rules.ends(counts, at.rows.size(), at.depth))
                for (auto item = first; item != last; ++item) add_shares(counts, answers + *item * k);
            else
                undecided.insert(undecided.end(), first, last);
            first = last;
        }
        if (!undecided.empty()) node.open(at.rows.data(), at.rows.size(), totals, at.key);
        while (!undecided.empty() && node.next()) {
            still.clear();
            for (auto first = undecided.begin(); first != undecided.end();) {
                const auto [label, weight] = sort_of(*first);
                if (weight) {
                    node.leave_out(label, weight);
                    node.summarise();
                }
                const Split of_all = weight ? Split{} : node.best(below);
                for (; first != undecided.end() && sort_of(*first) == std::make_pair(label, weight); ++first) {
                    const Split split = weight ? node.best(sample.row(gone[*first]), weight) : of_all;
                    if (split.column < 0) {
                        still.push_back(*first);
                        continue;
                    }
                    const bool right = asked[query[*first] * sample.n_columns + split.column] > split.bin;
                    moves.emplace_back(split.column, split.bin, right, *first);
                }
            }
            undecided.swap(still);
        }
        for (const std::int32_t item : undecided) add_shares(left_over(item), answers + item * k);
        std::sort(moves.begin(), moves.end());
        for (auto first = moves.begin(); first != moves.end();) {
            const auto [column, bin, right, item] = *first;
            Open child;
            const auto goes = [&, column = column, bin = bin, right = right](std::int32_t row) {
                return (sample.row(row)[column] > bin) == right;
            };
            const auto same = std::make_tuple(column, bin, right);
            for (; first != moves.end(); ++first) {
                if (std::make_tuple(std::get<0>(*first), std::get<1>(*first), std::get<2>(*first)) != same) break;
                const std::int32_t one = std::get<3>(*first);
                if (gone[one] >= 0 && !goes(gone[one])) gone[one] = -1;  // left out of the other side
                child.items.push_back(one);
            }
            std::copy_if(at.rows.begin(), at.rows.end(), std::back_inserter(child.rows), goes);
            child.depth = at.depth + 1;
            child.key = drawn(at.key, sample.n_columns + right);
            waiting.push_back(std::move(child));
        }
    }
}

// What is done with codes of so many bytes, 1 or 4; -1 without memory.
template <typename Done>
std::int64_t with_codes(std::int64_t n_bytes, const Done& done) {
    try {
        return n_bytes == 1 ? done(std::uint8_t{}) : done(std::int32_t{});
    } catch (...) {
        return -1;
    }
}

}  // namespace

// All take a sample: codes of so many bytes [rows, columns], and so on, see `Sample`; and rules, see `Rules`.
#define SAMPLE                                                                                                       \
    std::int64_t n_rows, std::int64_t n_columns, std::int64_t n_classes, std::int64_t n_bytes, const void *codes,    \
        const std::int32_t *n_bins, const float *values, const std::int32_t *labels, const double *terms,            \
        const Rules *rules

#define SAMPLE_OF(Code, weights)                                                                                     \
    Sample<Code> {                                                                                                   \
        n_rows, n_columns, n_classes, static_cast<const Code*>(codes), n_bins, values, labels, terms, weights        \
    }

// Grows a tree; nodes stand level by level, a right one after its left one. Returns their number, or -1 without memory.
extern "C" std::int64_t leakgauge_trees_grow(SAMPLE, const std::int32_t* weights, std::uint64_t key,
                                             std::int32_t* column, std::int32_t* bin, std::int32_t* left,
                                             std::int64_t* counts) {
    return with_codes(n_bytes, [&](auto code) {
        using Code = decltype(code);
        const auto sample = SAMPLE_OF(Code, weights);
        Node<Code> node(sample, *rules);
        std::int64_t id = 0, n_wanted = 1;
        grow(sample, *rules, node, key, [&](const std::vector<std::int64_t>& totals, Split split) {
            const bool inner = split.column >= 0;
            std::copy(totals.begin(), totals.end(), counts + id * n_classes);
            column[id] = split.column;
            bin[id] = split.bin;
            left[id] = inner ? static_cast<std::int32_t>(n_wanted) : -1;
            n_wanted += inner ? 2 : 0;
            ++id;
            return std::make_pair(inner, inner);
        });
        return id;
    });
}

// Adds to the answers [queries, classes] the class shares of the leaves that queries reach in trees with these keys
// [trees], each grown on so many draws of rows that are accepted with these chances [rows], see `draw_bag`, or once on
// each row that has any where there is no draw. Returns 0, or -1 without memory.
extern "C" std::int64_t leakgauge_trees_ask(SAMPLE, const std::uint64_t* accepted, std::int64_t n_draws,
                                            std::int64_t n_trees, const std::uint64_t* keys, std::int64_t n_queries,
                                            const void* asked, double* answers) {
    return with_codes(n_bytes, [&](auto code) {
        using Code = decltype(code);
        std::vector<std::int32_t> weights(n_rows);
        std::transform(accepted, accepted + n_rows, weights.begin(), [](std::uint64_t chance) { return chance > 0; });
        auto sample = SAMPLE_OF(Code, weights.data());
        const auto turned = by_column(sample.codes, n_rows, n_columns);
        const auto queries = by_column(static_cast<const Code*>(asked), n_queries, n_columns);
        sample.by_column = turned.data();
        Node<Code> node(sample, *rules);
        for (std::int64_t tree = 0; tree < n_trees; ++tree) {
            if (n_draws) draw_bag(accepted, n_rows, n_draws, drawn(keys[tree], 1), weights.data());
            ask(sample, *rules, node, drawn(keys[tree], 0), n_queries, queries.data(), answers);
        }
        return std::int64_t{0};
    });
}

// Adds to the answers [queries, classes] the class shares of the leaves that queries reach in trees whose roots have these
// keys [trees] and whose records count so often [trees, rows]. Returns 0, or -1 without memory.
extern "C" std::int64_t leakgauge_trees_ask_weighted(SAMPLE, std::int64_t n_trees, const std::int32_t* weights,
                                                     const std::uint64_t* keys, std::int64_t n_queries,
                                                     const void* asked, double* answers) {
    return with_codes(n_bytes, [&](auto code) {
        using Code = decltype(code);
        auto sample = SAMPLE_OF(Code, weights);
        const auto turned = by_column(sample.codes, n_rows, n_columns);
        const auto queries = by_column(static_cast<const Code*>(asked), n_queries, n_columns);
        sample.by_column = turned.data();
        Node<Code> node(sample, *rules);
        for (std::int64_t tree = 0; tree < n_trees; ++tree) {
            sample.weights = weights + tree * n_rows;
            ask(sample, *rules, node, keys[tree], n_queries, queries.data(), answers);
        }
        return std::int64_t{0};
    });
}

// Adds to the answers [items, classes] the class shares of the leaf that each item's query reaches in the tree grown
// without the item's record (-1: with all). Returns 0, or -1 without memory.
extern "C" std::int64_t leakgauge_trees_walk(SAMPLE, const std::int32_t* weights, std::uint64_t key,
                                             std::int64_t n_items, const std::int32_t* removed,
                                             const std::int32_t* query, const void* asked, double* answers) {
    return with_codes(n_bytes, [&](auto code) {
        using Code = decltype(code);
        const auto sample = SAMPLE_OF(Code, weights);
        walk(sample, *rules, key, n_items, removed, query, static_cast<const Code*>(asked), answers);
        return std::int64_t{0};
    });
}
