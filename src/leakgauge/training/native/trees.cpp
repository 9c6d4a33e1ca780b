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
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "growing.hpp"

namespace {

using namespace growing;

template <typename Code>
struct Sample {
    std::int64_t n_rows, n_columns, n_classes;
    const Code* codes;            // [rows, columns]
    const std::int32_t* n_bins;   // [columns]
    const float* values;          // what each code of each column stands for, ascending
    const std::int32_t* labels;   // [rows]
    const std::int32_t* weights;  // [rows]: how often each record counts

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

// What the records of a node of our own trees look like in the columns that it may split at, batch by batch of columns:
// first as many as the rules say, then one after the other, until one can be split.
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
        filled_.assign(n_slots * n_words_, 0);
        pages_.assign(n_slots * n_pages_, 0);
        entry_.resize(capacity_);
        bin_.resize(capacity_);
        lowest_.resize(capacity_);
        for (auto* part : {&best_, &below_, &squares_below_, &squares_above_, &if_left_, &if_right_})
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
    }

    // Takes the next batch of columns into consideration; false when there is none.
    bool next() {
        const std::int64_t wanted = std::min(taken_ ? taken_ + 1 : rules_.max_features, sample_.n_columns);
        if (wanted == taken_) return false;
        draw(taken_, wanted);
        batch_.assign(order_.begin() + taken_, order_.begin() + wanted);
        std::sort(batch_.begin(), batch_.end());
        taken_ = wanted;
        count();
        tabulate();
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

    // The best split where nothing is left out (`leave_out` of weight 0); the first one of equals.
    Split best() const {
        const std::int64_t top = std::max_element(if_left_.begin(), if_left_.begin() + n_entries_) - if_left_.begin();
        if (!(if_left_[top] > IMPOSSIBLE)) return {};
        const std::int32_t column = batch_[std::upper_bound(ends_.begin(), ends_.end(), top) - ends_.begin()];
        return {column, between(column, bin_[top], lowest_[top + 1])};
    }

  private:
    void draw(std::int64_t from, std::int64_t to) {
        if (rules_.max_features >= sample_.n_columns) return;
        for (std::int64_t i = from; i < to; ++i) {
            const std::uint64_t left = static_cast<std::uint64_t>(sample_.n_columns - i);
            const std::int64_t other = i + static_cast<std::int64_t>(((drawn(key_, i) >> 32) * left) >> 32);
            std::swap(order_[i], order_[other]);
            swaps_.emplace_back(i, other);
        }
    }

    // The code up to which records go left, where nobody is between two codes of a column.
    std::int32_t between(std::int32_t column, std::int32_t low, std::int32_t high) const {
        return code_between(sample_.values + first_bin_[column], low, high);
    }

    // The sums over the classes on both sides of every entry.
    void add_up() {
        const std::int64_t n = n_entries_;
        for (auto* part : {&below_, &squares_below_, &squares_above_}) std::fill_n(part->begin(), n, 0.0);
        for (std::int64_t c = 0; c < sample_.n_classes; ++c) {
            const double* left = left_.data() + c * capacity_;
            const double total = static_cast<double>((*totals_)[c]);
            double *below = below_.data(), *squares_below = squares_below_.data(), *above = squares_above_.data();
            for (std::int64_t e = 0; e < n; ++e) {
                below[e] += left[e];
                squares_below[e] += left[e] * left[e];
                above[e] += (total - left[e]) * (total - left[e]);
            }
        }
    }

    struct Column {
        std::int32_t index;
        std::int32_t* counts;  // of its bins
        std::uint64_t *filled, *pages;
    };

    Column column(std::int64_t slot) {
        return {batch_[slot], counts_.data() + slot * most_ * sample_.n_classes,
                filled_.data() + slot * n_words_, pages_.data() + slot * n_pages_};
    }

    void count() {
        const std::int64_t k = sample_.n_classes;
        columns_.clear();
        for (std::size_t slot = 0; slot < batch_.size(); ++slot) columns_.push_back(column(slot));
        for (std::int64_t i = 0; i < n_; ++i) {
            const Code* codes = sample_.row(rows_[i]);
            const std::int32_t weight = sample_.weights[rows_[i]], label = sample_.labels[rows_[i]];
            for (const Column& column : columns_) {
                const std::int64_t code = codes[column.index];
                column.counts[code * k + label] += weight;
                column.filled[code >> 6] |= std::uint64_t{1} << (code & 63);
                column.pages[code >> 12] |= std::uint64_t{1} << ((code >> 6) & 63);
            }
        }
    }

    // Turns the counts into an entry for each bin that is not empty, and clears them. Bins whose values are as good as
    // equal are one entry.
    void tabulate() {
        ends_.clear();
        n_entries_ = 0;
        for (const Column& column : columns_) {
            n_entries_ = sample_.n_classes == 2 ? entered<2>(column) : entered<0>(column);
            ends_.push_back(n_entries_);
        }
    }

    // How many entries there are with those of one column, for K classes (0: as many as there are).
    template <int K>
    std::int64_t entered(const Column& column) {
        const std::int64_t k = K ? K : sample_.n_classes, stride = capacity_;
        const float* const values = sample_.values + first_bin_[column.index];
        std::int32_t *const lowest = lowest_.data(), *const highest = bin_.data();
        double* const left = left_.data();
        std::int64_t few[K ? K : 1] = {};
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
    std::uint64_t key_ = 0;
    const std::vector<std::int64_t>* totals_ = nullptr;
    std::vector<std::int64_t> first_bin_;           // [columns + 1]: where each column's values begin
    std::vector<std::int32_t> order_, batch_;       // columns
    std::vector<Column> columns_;                   // of the batch
    std::vector<std::pair<std::int64_t, std::int64_t>> swaps_;
    std::vector<std::int32_t> counts_;              // [bins, classes], zero between nodes
    std::int64_t most_ = 0, capacity_ = 0;          // bins of a column, and of a batch of columns, at the most
    std::int64_t n_words_ = 0, n_pages_ = 0;
    std::vector<std::uint64_t> filled_, pages_;     // which bins of a column are not empty, and which of these words
    std::vector<std::int64_t> entry_;               // [bins]
    std::vector<double> best_;                      // [bins]
    std::vector<std::int32_t> bin_, lowest_;        // the last and the first bin of each entry
    std::vector<double> below_, left_;              // counts up to and including each entry
    std::vector<double> squares_below_, squares_above_;
    std::vector<double> if_left_, if_right_;        // scores
    std::vector<std::int64_t> ends_, running_;      // where the entries of each column of the batch end
};

void add_shares(const std::vector<std::int64_t>& counts, double* answer) {
    const std::int64_t total = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    for (std::size_t c = 0; c < counts.size(); ++c)
        answer[c] += total ? static_cast<double>(counts[c]) / static_cast<double>(total) : 1.0 / counts.size();
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
            if (rules.ends(counts.data(), k, at.rows.size(), at.depth))
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
                node.leave_out(label, weight);
                if (weight) node.summarise();
                const Split of_all = weight ? Split{} : node.best();
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

}  // namespace

// Grows a tree; nodes stand level by level, a right one after its left one. Returns their number, or -1 without memory.
extern "C" std::int64_t leakgauge_trees_grow(POOL, const std::int32_t* weights, std::uint64_t key,
                                             std::int32_t* column, std::int32_t* bin, std::int32_t* left,
                                             std::int64_t* counts) {
    return with_codes(n_bytes, [&](auto code) {
        using Code = decltype(code);
        auto pool = POOL_OF(Code);
        pool.weights = weights;
        Splitter<Code> splitter(pool, *rules);
        std::int64_t id = 0, n_wanted = 1;
        grow(pool, *rules, splitter, key, [&](const std::int64_t* totals, Split split) {
            const bool inner = split.column >= 0;
            std::copy(totals, totals + n_classes, counts + id * n_classes);
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

// Adds to the answers [queries, classes] the class shares of the leaves that queries [columns, queries] reach in trees
// with these keys [trees], each grown on so many draws of rows that are accepted with these chances [rows], see
// `draw_bag`, or once on each row that has any where there is no draw. Returns 0, or -1 without memory.
extern "C" std::int64_t leakgauge_trees_ask(POOL, const std::uint64_t* accepted, std::int64_t n_draws,
                                            std::int64_t n_trees, const std::uint64_t* keys, std::int64_t n_queries,
                                            const void* asked, const std::uint64_t* asked_bits, double* answers) {
    return with_codes(n_bytes, [&](auto code) {
        using Code = decltype(code);
        std::vector<std::int32_t> weights(n_rows);
        std::transform(accepted, accepted + n_rows, weights.begin(), [](std::uint64_t chance) { return chance > 0; });
        auto pool = POOL_OF(Code);
        pool.weights = weights.data();
        Splitter<Code> splitter(pool, *rules);
        const Columns<Code> queries{n_queries, static_cast<const Code*>(asked), asked_bits};
        for (std::int64_t tree = 0; tree < n_trees; ++tree) {
            if (n_draws) draw_bag(accepted, n_rows, n_draws, drawn(keys[tree], 1), weights.data());
            ask(pool, *rules, splitter, drawn(keys[tree], 0), queries, answers);
        }
        return std::int64_t{0};
    });
}

// The same in trees whose roots have these keys [trees] and whose records count so often [trees, rows].
extern "C" std::int64_t leakgauge_trees_ask_counted(POOL, std::int64_t n_trees, const std::int32_t* weights,
                                                     const std::uint64_t* keys, std::int64_t n_queries,
                                                     const void* asked, const std::uint64_t* asked_bits, double* answers) {
    return with_codes(n_bytes, [&](auto code) {
        using Code = decltype(code);
        auto pool = POOL_OF(Code);
        Splitter<Code> splitter(pool, *rules);
        const Columns<Code> queries{n_queries, static_cast<const Code*>(asked), asked_bits};
        for (std::int64_t tree = 0; tree < n_trees; ++tree) {
            pool.weights = weights + tree * n_rows;
            ask(pool, *rules, splitter, keys[tree], queries, answers);
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
        const Sample<Code> sample{n_rows, n_columns, n_classes, static_cast<const Code*>(codes), n_bins, values, labels,
                                  weights};
        walk(sample, *rules, key, n_items, removed, query, static_cast<const Code*>(asked), answers);
        return std::int64_t{0};
    });
}
