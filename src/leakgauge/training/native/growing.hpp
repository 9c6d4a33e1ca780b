// Growing classification trees on ranked features. What many trees are grown on is prepared once: the codes column by
// column, and columns of two codes as bits, so that few bits tell which of them a small node may be split at, and a large
// node meets only those of its records that have the second code.

#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "splitting.hpp"

namespace growing {

// More than any of the numbers that are counted side by side in one.
constexpr std::uint64_t FIELD = std::uint64_t{1} << 21;

constexpr double IMPOSSIBLE = -std::numeric_limits<double>::infinity();

// The number at a place of the stream of a key: splitmix64 (Steele, Lea and Flood 2014).
inline std::uint64_t drawn(std::uint64_t key, std::uint64_t place) {
    std::uint64_t z = key + 0x9E3779B97F4A7C15ULL * (place + 1);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

enum Criterion : std::int64_t { FRACTION, GINI, ENTROPY, SQUARED_ERROR };

// How pure a split is, from the sums of squared counts of the classes and the totals on both sides.
inline double score(double squares_left, double n_left, double squares_right, double n_right) {
    return (squares_left * n_right + squares_right * n_left) / (n_left * n_right);
}

// The same as scikit-learn rounds it: less the impurity of both sides, by their totals.
inline double gini(double squares_left, double n_left, double squares_right, double n_right) {
    return -n_right * (1.0 - squares_right / (n_right * n_right)) - n_left * (1.0 - squares_left / (n_left * n_left));
}

// See `Rules` in training/trees.py; all are whole numbers, so that they come as one array.
struct Rules {
    std::int64_t max_features, max_depth, min_samples_split, min_samples_leaf, criterion;
    std::int64_t looks_on, drawn_ties, sizes_by_record, drawn_thresholds;

    // Whether a node of so many records with these counts of k classes is a leaf for certain.
    bool ends(const std::int64_t* counts, std::int64_t k, std::int64_t n_records, std::int64_t depth) const {
        std::int64_t total = 0, most = 0;
        for (std::int64_t c = 0; c < k; ++c) total += counts[c], most = std::max(most, counts[c]);
        return depth >= max_depth || (sizes_by_record ? n_records : total) < min_samples_split || most == total;
    }
};

struct Split {
    std::int32_t column = -1;  // -1: a leaf
    std::int32_t bin = 0;      // records with a code of at most this go left
};

// Calls back with the place of every bit of a word, lowest first.
template <typename Done>
void each_bit(std::uint64_t bits, const Done& done) {
    for (; bits; bits &= bits - 1) done(__builtin_ctzll(bits));
}

// What trees are grown on, with the weights of one of them.
template <typename Code>
struct Pool {
    std::int64_t n_rows, n_columns, n_classes;
    const Code* codes;               // [columns, rows]
    const Code* by_row;              // [rows, columns]: the same
    const std::int32_t* n_bins;      // [columns]
    const float* values;             // what each code of each column stands for, ascending
    const std::int32_t* labels;      // [rows]
    const double* terms;             // [total weight + 1]: what a class that counts so often adds to the entropy
    const std::uint64_t* row_bits;     // [rows, words of columns]: which codes are above 0
    const std::uint64_t* column_bits;  // [columns, words of rows]: the same
    const std::int32_t* weights = nullptr;  // [rows]: how often each record counts

    const Code* column(std::int64_t j) const { return codes + j * n_rows; }
};

// A threshold drawn between two values of a column, and the code up to which records go left there.
inline double value_drawn(const float* values, std::int32_t low, std::int32_t high, std::uint64_t chance) {
    const double share = static_cast<double>(chance >> 11) * 0x1p-53;
    return (static_cast<double>(values[high]) - values[low]) * share + values[low];
}

inline std::int32_t code_drawn(const float* values, std::int32_t low, std::int32_t high, std::uint64_t chance) {
    const float* const bound = std::upper_bound(values + low, values + high, value_drawn(values, low, high, chance));
    return std::max(low, static_cast<std::int32_t>(bound - values) - 1);
}

// Finds the best split of a node.
template <typename Code>
class Splitter {
  public:
    Splitter(const Pool<Code>& pool, const Rules& rules)
        : pool_(pool), rules_(rules), n_words_((pool.n_rows + 63) / 64), column_words_((pool.n_columns + 63) / 64),
          first_bin_(pool.n_columns + 1, 0), kinds_(pool.n_columns), apart_(pool.n_columns), order_(pool.n_columns), others_(pool.n_columns),
          packed_(pool.n_rows), next_(pool.n_rows), hits_(pool.n_rows + 1), node_(n_words_), more_(column_words_, 0),
          varying_(column_words_), left_(pool.n_classes), right_(pool.n_classes) {
        std::int64_t most = 1;
        for (std::int64_t j = 0; j < pool.n_columns; ++j) {
            const std::int64_t n = pool.n_bins[j];
            const float* values = pool.values + first_bin_[j];
            first_bin_[j + 1] = first_bin_[j] + n;
            kinds_[j] = n > 2 ? MORE : n == 2 && values[1] > values[0] + NEAR ? TWO : ONE;
            if (kinds_[j] == MORE) more_[j / 64] |= std::uint64_t{1} << (j % 64), most = std::max(most, n);
            has_two_ |= kinds_[j] == TWO;
            apart_[j] = true;
            for (std::int64_t v = 1; v < n; ++v) apart_[j] &= values[v] > values[v - 1] + NEAR;
        }
        cells_.assign(most, 0);
        filled_.assign((most + 63) / 64, 0);
        pages_.assign((filled_.size() + 63) / 64, 0);
        std::iota(order_.begin(), order_.end(), 0);
    }

    // Another tree: what of a record is added up, side by side in one number where there are two classes.
    void start() {
        std::int64_t total = 0;
        for (std::int64_t i = 0; i < pool_.n_rows; ++i) {
            const std::uint64_t weight = pool_.weights[i];
            packed_[i] = FIELD * FIELD + FIELD * weight + weight * pool_.labels[i];
            total += pool_.weights[i];
        }
        packs_ = pool_.n_classes == 2 && total < static_cast<std::int64_t>(FIELD);
    }

    // The best split of a node of these records, whose classes count so often: the first one of equals.
    Split best(const std::int32_t* rows, std::int64_t n, const std::int64_t* totals, std::uint64_t key) {
        rows_ = rows, n_ = n, totals_ = totals, key_ = key;
        total_ = squares_ = 0;
        for (std::int64_t c = 0; c < pool_.n_classes; ++c) total_ += totals[c], squares_ += totals[c] * totals[c];
        split_ = {};
        top_ = floor_ = IMPOSSIBLE;
        varies_ = few_ = many_ = false;
        if (has_two_) gather_bits();
        if (n <= FEW) {
            for (std::int64_t i = 0; i < n; ++i) labels_[i] = pool_.labels[rows[i]], weights_[i] = pool_.weights[rows[i]];
        }
        std::int64_t taken = 0;
        do {  // first as many columns as the rules say, then one after the other
            const std::int64_t wanted = taken ? taken + 1 : std::min(rules_.max_features, pool_.n_columns);
            draw(taken, wanted);
            if (!rules_.drawn_ties && n_drawn_) {
                batch_.assign(order_.begin() + taken, order_.begin() + wanted);
                std::sort(batch_.begin(), batch_.end());
                for (const std::int32_t j : batch_) look_at(j);
            } else {
                for (std::int64_t i = taken; i < wanted; ++i) look_at(order_[i]);
            }
            taken = wanted;
        } while (split_.column < 0 && taken < pool_.n_columns && (rules_.looks_on || !varies_));
        while (n_drawn_) {  // the columns in their own order again
            --n_drawn_;
            std::swap(order_[n_drawn_], order_[others_[n_drawn_]]);
        }
        if (split_.column >= 0 && high_ >= 0)
            split_.bin = code_between(pool_.values + first_bin_[split_.column], split_.bin, high_);
        return split_;
    }

  private:
    enum Kind : std::uint8_t { ONE, TWO, MORE };  // values of a column that are told apart

    static constexpr std::int32_t PAGE = 4096;  // codes of which all words are looked through
    static constexpr int FEW = 32;              // records of a node that are sorted
    static constexpr std::int64_t SMALL = 64;  // records of a node of which the bits of all columns are looked at

    void draw(std::int64_t from, std::int64_t to) {
        if (rules_.max_features >= pool_.n_columns && !rules_.drawn_ties) return;
        for (std::int64_t i = from; i < to; ++i) {
            const std::uint64_t left = static_cast<std::uint64_t>(pool_.n_columns - i);
            others_[i] = static_cast<std::int32_t>(i + static_cast<std::int64_t>(((drawn(key_, i) >> 32) * left) >> 32));
            std::swap(order_[i], order_[others_[i]]);
        }
        n_drawn_ = to;
    }

    // Of a small node which columns vary, of a large one which records it has.
    void gather_bits() {
        if (n_ <= SMALL) {
            few_ = true;
            std::copy(more_.begin(), more_.end(), varying_.begin());
            std::uint64_t* const varying = varying_.data();
            const std::uint64_t* const first = pool_.row_bits + rows_[0] * column_words_;
            for (std::int64_t i = 1; i < n_; ++i) {
                const std::uint64_t* const other = pool_.row_bits + rows_[i] * column_words_;
                for (std::int64_t w = 0; w < column_words_; ++w) varying[w] |= first[w] ^ other[w];
            }
        } else if (n_words_ < n_) {
            many_ = true;
            std::fill(node_.begin(), node_.end(), 0);
            for (std::int64_t i = 0; i < n_; ++i) node_[rows_[i] >> 6] |= std::uint64_t{1} << (rows_[i] & 63);
        }
    }

    void look_at(std::int32_t column) {
        if (few_ && !(varying_[column >> 6] >> (column & 63) & 1)) return;
        if (kinds_[column] == TWO) part(column);
        if (kinds_[column] == MORE && rules_.drawn_thresholds) cut(column);
        if (kinds_[column] == MORE && !rules_.drawn_thresholds) scan(column);
    }

    // Splits a column of two codes, by those records that have the second one.
    void part(std::int32_t column) {
        std::int64_t n = 0;
        std::int32_t* const hits = hits_.data();
        if (many_) {
            const std::uint64_t* const bits = pool_.column_bits + column * n_words_;
            for (std::int64_t w = 0; w < n_words_; ++w)
                each_bit(node_[w] & bits[w], [&](int bit) { hits[n++] = static_cast<std::int32_t>(64 * w + bit); });
        } else {
            const std::uint64_t* const bits = pool_.row_bits + column / 64;
            for (std::int64_t i = 0; i < n_; ++i) {
                hits[n] = rows_[i];
                n += bits[rows_[i] * column_words_] >> (column & 63) & 1;
            }
        }
        if (n == 0 || n == n_) return;
        varies_ = true;
        if (packs_) {
            std::uint64_t sum = 0;
            for (std::int64_t i = 0; i < n; ++i) sum += packed_[hits[i]];
            const std::int64_t second = sum % FIELD, both = sum / FIELD % FIELD, first = both - second;
            left_[0] = totals_[0] - first, left_[1] = totals_[1] - second;
            offer(column, 0, -1, n_ - n, total_ - both, squared(left_[0]) + squared(left_[1]),
                  squared(first) + squared(second));
            return;
        }
        std::int64_t right = 0, squares_right = 0, products = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const std::int64_t label = pool_.labels[hits[i]], weight = pool_.weights[hits[i]];
            squares_right += weight * (2 * right_[label] + weight);
            products += weight * totals_[label];
            right_[label] += weight;
            right += weight;
        }
        if (rules_.criterion == ENTROPY)
            for (std::int64_t c = 0; c < pool_.n_classes; ++c) left_[c] = totals_[c] - right_[c];
        for (std::int64_t i = 0; i < n; ++i) right_[pool_.labels[hits[i]]] = 0;
        offer(column, 0, -1, n_ - n, total_ - right, squares_ - 2 * products + squares_right, squares_right);
    }

    // Splits a column wherever its values are told apart. The records of a small node are sorted, by how many have a lower
    // code; those of a large one are put where their code belongs, and met in order by a set of the codes that are there.
    void scan(std::int32_t column) {
        if (n_ <= 4) scan_sorted<4>(column);
        else if (n_ <= 8) scan_sorted<8>(column);
        else if (n_ <= 16) scan_sorted<16>(column);
        else if (n_ <= FEW) scan_sorted<FEW>(column);
        else if (packs_) scan_counted(column);
        else scan_chained(column);
    }

    // What is below a code while a column is met in order.
    struct Below {
        std::int64_t records = 0, weight = 0, squares = 0, products = 0;
        std::int32_t first = -1, last = -1;
    };

    // Another code is met: behind the last one the column may be split.
    void meet(Below& below, std::int32_t column, const float* values, std::int32_t code) {
        if (below.first < 0)
            below.first = code;
        else if (apart_[column] || values[code] > values[below.last] + NEAR)
            offer(column, below.last, code, below.records, below.weight, below.squares,
                  squares_ - 2 * below.products + below.squares);
        below.last = code;
    }

    void vary(const Below& below, std::int32_t column, const float* values) {
        varies_ |= below.last > below.first && (apart_[column] || values[below.last] > values[below.first] + NEAR);
    }

    void add(Below& below, std::int64_t label, std::int64_t weight) {
        below.squares += weight * (2 * left_[label] + weight);
        below.products += weight * totals_[label];
        below.weight += weight;
        left_[label] += weight;
    }

    template <int N>
    void scan_sorted(std::int32_t column) {
        const float* const values = pool_.values + first_bin_[column];
        std::int32_t held[N], place[N] = {}, order[N];
        std::fill(held, held + N, std::numeric_limits<std::int32_t>::max() - 1);
        for (std::int64_t i = 0; i < n_; ++i) held[i] = pool_.by_row[rows_[i] * pool_.n_columns + column];
        for (std::int64_t j = 0; j < n_; ++j) {
            const std::int32_t code = held[j];
            for (std::int32_t i = 0; i < N; ++i) place[i] += code < held[i] + (i > j);
        }
        for (std::int32_t i = 0; i < n_; ++i) order[place[i]] = i;
        Below below;
        std::fill(left_.begin(), left_.end(), 0);
        for (std::int64_t i = 0; i < n_; ++i) {
            const std::int32_t code = held[order[i]];
            if (code != below.last) meet(below, column, values, code);
            add(below, labels_[order[i]], weights_[order[i]]);
            ++below.records;
        }
        vary(below, column, values);
    }

    // Of two classes, the counts of each code are side by side in one number.
    void scan_counted(std::int32_t column) {
        const float* const values = pool_.values + first_bin_[column];
        put(column, [&](std::int64_t row, std::uint64_t& cell, bool) { cell += packed_[row]; });
        Below below;
        std::fill(left_.begin(), left_.end(), 0);
        take(column, [&](std::int32_t code) {
            meet(below, column, values, code);
            const std::uint64_t sum = std::exchange(cells_[code], 0);
            add(below, 0, sum / FIELD % FIELD - sum % FIELD);
            add(below, 1, sum % FIELD);
            below.records += sum / (FIELD * FIELD);
        });
        vary(below, column, values);
    }

    // Of more classes, the records of a code are a chain.
    void scan_chained(std::int32_t column) {
        const float* const values = pool_.values + first_bin_[column];
        std::int32_t* const next = next_.data();
        put(column, [&](std::int64_t row, std::uint64_t& cell, bool there) {
            next[row] = there ? static_cast<std::int32_t>(cell) : -1;
            cell = row;
        });
        Below below;
        std::fill(left_.begin(), left_.end(), 0);
        take(column, [&](std::int32_t code) {
            meet(below, column, values, code);
            for (auto row = static_cast<std::int32_t>(std::exchange(cells_[code], 0)); row >= 0; row = next[row]) {
                add(below, pool_.labels[row], pool_.weights[row]);
                ++below.records;
            }
        });
        vary(below, column, values);
    }

    // Has each record of the node put into the cell of its code: `done` is told whether that holds one.
    template <typename Done>
    void put(std::int32_t column, const Done& done) {
        const Code* const codes = pool_.column(column);
        std::uint64_t *const cells = cells_.data(), *const filled = filled_.data(), *const pages = pages_.data();
        const bool paged = pool_.n_bins[column] > PAGE;
        for (std::int64_t i = 0; i < n_; ++i) {
            const std::int64_t row = rows_[i], code = codes[row];
            const std::uint64_t bit = std::uint64_t{1} << (code & 63);
            done(row, cells[code], filled[code >> 6] & bit);
            filled[code >> 6] |= bit;
            if (paged) pages[code / PAGE] |= std::uint64_t{1} << ((code >> 6) & 63);
        }
    }

    // Calls back with the codes of filled cells, in ascending order, and forgets them.
    template <typename Done>
    void take(std::int32_t column, const Done& done) {
        const std::int64_t n = pool_.n_bins[column];
        const auto take_word = [&](std::int64_t word) {
            each_bit(std::exchange(filled_[word], 0), [&](int bit) { done(static_cast<std::int32_t>(64 * word + bit)); });
        };
        if (n <= PAGE) {
            for (std::int64_t word = 0; word * 64 < n; ++word) take_word(word);
        } else {
            for (std::int64_t page = 0; page * PAGE < n; ++page)
                each_bit(std::exchange(pages_[page], 0), [&](int place) { take_word(64 * page + place); });
        }
    }

    // Splits a column at one threshold drawn between its lowest and its highest value.
    void cut(std::int32_t column) {
        const Code* const codes = pool_.column(column);
        const float* const values = pool_.values + first_bin_[column];
        std::int32_t low = std::numeric_limits<std::int32_t>::max(), high = 0;
        for (std::int64_t i = 0; i < n_; ++i) {
            low = std::min<std::int32_t>(low, codes[rows_[i]]);
            high = std::max<std::int32_t>(high, codes[rows_[i]]);
        }
        if (!(values[high] > values[low] + NEAR)) return;
        varies_ = true;
        const std::int32_t bin = code_drawn(values, low, high, drawn(key_, pool_.n_columns + 2 + column));
        std::int64_t records = 0, below = 0, squares_below = 0, squares_above = 0;
        std::fill(left_.begin(), left_.end(), 0);
        for (std::int64_t i = 0; i < n_; ++i) {
            const bool left = codes[rows_[i]] <= bin;
            left_[pool_.labels[rows_[i]]] += left ? pool_.weights[rows_[i]] : 0;
            records += left;
        }
        for (std::int64_t c = 0; c < pool_.n_classes; ++c) {
            below += left_[c];
            squares_below += squared(left_[c]);
            squares_above += squared(totals_[c] - left_[c]);
        }
        offer(column, bin, -1, records, below, squares_below, squares_above);
    }

    static std::int64_t squared(std::int64_t count) { return count * count; }

    // Takes a split, if it is the best so far: behind the code `low`, or halfway to `high` if that is one.
    void offer(std::int32_t column, std::int32_t low, std::int32_t high, std::int64_t records, std::int64_t below,
               std::int64_t squares_below, std::int64_t squares_above) {
        const bool by_record = rules_.sizes_by_record && rules_.min_samples_leaf > 1;
        const std::int64_t size = by_record ? records : below, others = (by_record ? n_ : total_) - size;
        if (std::min(size, others) < rules_.min_samples_leaf) return;
        const double nl = static_cast<double>(below), nr = static_cast<double>(total_ - below);
        const double sl = static_cast<double>(squares_below), sr = static_cast<double>(squares_above);
        double found;
        if (rules_.criterion == ENTROPY) {
            found = entropy(below);
        } else {
            if (sl * nr + sr * nl < floor_ * (nl * nr)) return;  // worse, however that is rounded: no division
            found = rules_.criterion == GINI ? gini(sl, nl, sr, nr) : score(sl, nl, sr, nr);
        }
        if (!(found > top_)) return;
        top_ = found;
        floor_ = score(sl, nl, sr, nr) - 1e-9 * static_cast<double>(total_);
        split_ = {column, low};
        high_ = high;
    }

    double entropy(std::int64_t below) const {
        double sum_below = 0, sum_above = 0;
        for (std::int64_t c = 0; c < pool_.n_classes; ++c) {
            sum_below += pool_.terms[left_[c]];
            sum_above += pool_.terms[totals_[c] - left_[c]];
        }
        return (sum_below - pool_.terms[below]) + (sum_above - pool_.terms[total_ - below]);
    }

    const Pool<Code>& pool_;
    const Rules& rules_;
    const std::int64_t n_words_, column_words_;      // words of bits for all rows, and for all columns
    std::vector<std::int64_t> first_bin_;            // [columns + 1]: where each column's values begin
    std::vector<Kind> kinds_;                        // [columns]
    std::vector<std::uint8_t> apart_;                // [columns]: whether all values are told apart from the next one
    bool has_two_ = false, packs_ = false;
    std::vector<std::int32_t> order_, others_, batch_;  // columns, and with which each drawn one changed its place
    std::int64_t n_drawn_ = 0;
    std::vector<std::uint64_t> packed_;              // [rows]: records, their weight, and that of the second class
    std::vector<std::int32_t> next_, hits_;          // [rows]
    std::vector<std::uint64_t> node_;                // [words of rows]: which records a large node has
    std::vector<std::uint64_t> more_, varying_;      // [words of columns]: of more than two codes; not constant in a small node
    std::vector<std::uint64_t> cells_, filled_, pages_;  // [codes]; which of them, and which of these words, hold anything
    std::vector<std::int64_t> left_, right_;         // [classes]; the right ones 0 between columns
    // of the node at hand
    const std::int32_t* rows_ = nullptr;
    const std::int64_t* totals_ = nullptr;
    std::int64_t n_ = 0, total_ = 0, squares_ = 0;
    std::uint64_t key_ = 0;
    bool few_ = false, many_ = false;
    bool varies_ = false;                            // whether the lowest and the highest value of a column are told apart
    Split split_;                                    // with the code behind which it is,
    std::int32_t high_ = -1;                         // and if it is halfway to another one, that
    std::int32_t labels_[FEW], weights_[FEW];        // of the records, if they are few
    double top_ = 0, floor_ = 0;                     // the score of the split, and less than the purity of any better one
};

// Moves what goes left to the front, both sides in their order; returns where the other side begins.
template <typename Right>
std::int64_t parted(std::int32_t* items, std::int64_t n, std::int32_t* room, const Right& right) {
    std::int64_t n_left = 0, n_right = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const std::int32_t item = items[i];
        const bool goes_right = right(item);
        items[n_left] = item;
        room[n_right] = item;
        n_left += !goes_right;
        n_right += goes_right;
    }
    std::copy(room, room + n_right, items + n_left);
    return n_left;
}

// Codes column by column, and which are above 0 as bits: these stay in the cache.
template <typename Code>
struct Columns {
    std::int64_t n;             // codes of a column
    const Code* codes;          // [columns, n]
    const std::uint64_t* bits;  // [columns, words of n]

    std::int64_t part(std::int32_t* items, std::int64_t n_items, Split split, std::int32_t n_bins, std::int32_t* room) const {
        if (n_bins == 2) {
            const std::uint64_t* const own = bits + split.column * ((n + 63) / 64);
            return parted(items, n_items, room, [=](std::int32_t i) { return own[i >> 6] >> (i & 63) & 1; });
        }
        const Code* const own = codes + split.column * n;
        return parted(items, n_items, room, [=](std::int32_t i) { return static_cast<std::int32_t>(own[i]) > split.bin; });
    }
};

// Grows a tree level by level. `reached(totals, split)` is told of every node and answers which of the two nodes below
// are wanted; nodes are told of in the order in which they were wanted.
template <typename Code, typename Reached>
void grow(const Pool<Code>& pool, const Rules& rules, Splitter<Code>& splitter, std::uint64_t key, Reached reached) {
    struct Open {
        std::int64_t begin, end, depth;
        std::uint64_t key;
    };
    const std::int64_t k = pool.n_classes;
    const Columns<Code> columns{pool.n_rows, pool.codes, pool.column_bits};
    std::vector<std::int32_t> rows, room(pool.n_rows);
    std::vector<std::int64_t> counts(k, 0), below(k);  // [nodes, classes], and those on the left
    for (std::int64_t i = 0; i < pool.n_rows; ++i) {
        if (pool.weights[i] > 0) rows.push_back(static_cast<std::int32_t>(i));
        counts[pool.labels[i]] += pool.weights[i];
    }
    std::vector<Open> nodes{{0, static_cast<std::int64_t>(rows.size()), 0, key}};
    splitter.start();
    for (std::size_t id = 0; id < nodes.size(); ++id) {
        const Open at = nodes[id];
        const std::int64_t n = at.end - at.begin;
        std::int32_t* const mine = rows.data() + at.begin;
        const std::int64_t* totals = counts.data() + id * k;
        Split split;
        if (!rules.ends(totals, k, n, at.depth)) split = splitter.best(mine, n, totals, at.key);
        const auto [left, right] = reached(totals, split);
        if (!left && !right) continue;
        const std::int64_t n_left = columns.part(mine, n, split, pool.n_bins[split.column], room.data());
        std::fill(below.begin(), below.end(), 0);
        for (std::int64_t i = 0; i < n_left; ++i) below[pool.labels[mine[i]]] += pool.weights[mine[i]];
        if (left) {
            nodes.push_back({at.begin, at.begin + n_left, at.depth + 1, drawn(at.key, pool.n_columns)});
            counts.insert(counts.end(), below.begin(), below.end());
        }
        if (right) {
            nodes.push_back({at.begin + n_left, at.end, at.depth + 1, drawn(at.key, pool.n_columns + 1)});
            for (std::int64_t c = 0; c < k; ++c) counts.push_back(counts[id * k + c] - below[c]);
        }
    }
}

// Adds to the answers [queries, classes] the class shares of the leaves that queries [columns, queries] reach in a tree of
// which only the nodes on their way are grown.
template <typename Code>
void ask(const Pool<Code>& pool, const Rules& rules, Splitter<Code>& splitter, std::uint64_t key,
         const Columns<Code>& asked, double* answers) {
    const std::int64_t k = pool.n_classes;
    std::vector<std::int32_t> queries(asked.n), room(asked.n);
    std::iota(queries.begin(), queries.end(), 0);
    std::vector<std::pair<std::int64_t, std::int64_t>> parts{{0, asked.n}};
    std::size_t id = 0;
    grow(pool, rules, splitter, key, [&](const std::int64_t* totals, Split split) {
        const auto [begin, end] = parts[id++];
        std::int32_t* const mine = queries.data() + begin;
        if (split.column >= 0) {
            const std::int64_t middle = begin + asked.part(mine, end - begin, split, pool.n_bins[split.column], room.data());
            if (begin < middle) parts.emplace_back(begin, middle);
            if (middle < end) parts.emplace_back(middle, end);
            return std::make_pair(begin < middle, middle < end);
        }
        const std::int64_t total = std::accumulate(totals, totals + k, std::int64_t{0});
        for (std::int64_t c = 0; c < k; ++c) {
            if (total && !totals[c]) continue;  // most leaves have few classes
            const double share = total ? static_cast<double>(totals[c]) / static_cast<double>(total) : 1.0 / k;
            for (std::int64_t i = 0; i < end - begin; ++i) answers[mine[i] * k + c] += share;
        }
        return std::make_pair(false, false);
    });
}

// As many draws with replacement from a pool, each from a stream of its own of rows: how often each row was drawn. A row is
// accepted with a probability in units of 2^-32. Where one is accepted no more the draws change that held it, and no others.
inline void draw_bag(const std::uint64_t* accepted, std::int64_t n_rows, std::int64_t n_draws, std::uint64_t key,
                     std::int32_t* weights) {
    std::fill(weights, weights + n_rows, 0);
    std::vector<std::uint64_t> streams(n_draws);  // of the draws that have not found a row
    for (std::int64_t draw = 0; draw < n_draws; ++draw) streams[draw] = drawn(key, draw);
    for (std::uint64_t place = 0; n_draws; ++place) {
        std::int64_t n_left = 0;
        for (std::int64_t i = 0; i < n_draws; ++i) {
            const std::uint64_t stream = streams[i], chance = drawn(stream, place);
            const std::uint64_t row = ((chance >> 32) * static_cast<std::uint64_t>(n_rows)) >> 32;
            const bool taken = (chance & 0xFFFFFFFFULL) < accepted[row];
            weights[row] += taken;
            streams[n_left] = stream;
            n_left += !taken;
        }
        n_draws = n_left;
    }
}

// What is done with codes of so many bytes, 1, 2 or 4; -1 without memory.
template <typename Done>
std::int64_t with_codes(std::int64_t n_bytes, const Done& done) {
    try {
        return n_bytes == 1 ? done(std::uint8_t{}) : n_bytes == 2 ? done(std::uint16_t{}) : done(std::int32_t{});
    } catch (...) {
        return -1;
    }
}

}  // namespace growing

// What functions take: a sample, codes of so many bytes, [columns, rows] where trees are grown and [rows, columns] where
// they are followed, and so on, see `Pool` and `Sample`; and rules, see `Rules`.
#define SAMPLE                                                                                                       \
    std::int64_t n_rows, std::int64_t n_columns, std::int64_t n_classes, std::int64_t n_bytes, const void *codes,    \
        const std::int32_t *n_bins, const float *values, const std::int32_t *labels, const growing::Rules *rules

#define POOL SAMPLE, const void *by_row, const double *terms, const std::uint64_t *row_bits, const std::uint64_t *column_bits

#define POOL_OF(Code)                                                                                                \
    growing::Pool<Code> {                                                                                            \
        n_rows, n_columns, n_classes, static_cast<const Code*>(codes), static_cast<const Code*>(by_row), n_bins,     \
            values, labels, terms, row_bits, column_bits                                                             \
    }
