// Regression trees of scikit-learn's forests on ranked features, of which only the nodes on the way of queries are grown.
// Nodes are split so that the squared errors of both sides become least. What is drawn is drawn as for classification.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "growing.hpp"

namespace {

using namespace growing;

// What scikit-learn takes for no impurity.
constexpr double PURE = std::numeric_limits<double>::epsilon();

template <typename Code>
class Regression {
  public:
    Regression(const Pool<Code>& pool, const Rules& rules, const double* target)
        : pool_(pool), rules_(rules), target_(target), columns_{pool.n_rows, pool.codes, pool.column_bits},
          first_bin_(pool.n_columns + 1, 0), order_(pool.n_columns), others_(pool.n_columns), pull_(pool.n_rows),
          room_(pool.n_rows), keys_(pool.n_rows), parts_(pool.n_rows), held_(pool.n_rows) {
        for (std::int64_t j = 0; j < pool.n_columns; ++j) first_bin_[j + 1] = first_bin_[j] + pool.n_bins[j];
        const std::int64_t most = *std::max_element(pool.n_bins, pool.n_bins + pool.n_columns);
        cells_.assign(most, Part{});
        filled_.assign((most + 63) / 64, 0);
        std::iota(order_.begin(), order_.end(), 0);
    }

    // Adds to the answers [queries] the means of the leaves that queries [columns, queries] reach in a tree of rows that
    // count so often.
    void ask(const std::int32_t* weights, std::uint64_t key, const Columns<Code>& asked, double* answers) {
        weights_ = weights;
        rows_.clear();
        for (std::int64_t i = 0; i < pool_.n_rows; ++i) {
            if (weights[i] > 0) rows_.push_back(static_cast<std::int32_t>(i));
            pull_[i] = weights[i] * target_[i];
        }
        queries_.resize(asked.n);
        std::iota(queries_.begin(), queries_.end(), 0);
        std::vector<std::int32_t> room(asked.n);
        waiting_.assign(1, {0, static_cast<std::int64_t>(rows_.size()), 0, asked.n, 0, key});
        while (!waiting_.empty()) {
            const Open at = waiting_.back();
            waiting_.pop_back();
            std::int32_t *const rows = rows_.data() + at.begin, *const mine = queries_.data() + at.first_query;
            const std::int64_t n = at.end - at.begin, n_queries = at.last_query - at.first_query;
            Split split;
            if (!ends(rows, n, at.depth)) split = best(rows, n, at.key);
            if (split.column < 0) {
                for (std::int64_t i = 0; i < n_queries; ++i) answers[mine[i]] += all_.sum / static_cast<double>(all_.weight);
                continue;
            }
            const std::int32_t n_bins = pool_.n_bins[split.column];
            const std::int64_t middle = at.first_query + asked.part(mine, n_queries, split, n_bins, room.data());
            const std::int64_t half = at.begin + columns_.part(rows, n, split, n_bins, room_.data());
            const std::uint64_t left = drawn(at.key, pool_.n_columns), right = drawn(at.key, pool_.n_columns + 1);
            if (middle < at.last_query) waiting_.push_back({half, at.end, middle, at.last_query, at.depth + 1, right});
            if (at.first_query < middle) waiting_.push_back({at.begin, half, at.first_query, middle, at.depth + 1, left});
        }
    }

  private:
    struct Open {
        std::int64_t begin, end, first_query, last_query, depth;
        std::uint64_t key;
    };

    // Of some records: how many, how often they count together, and what their values add up to then.
    struct Part {
        std::int32_t n = 0, weight = 0;
        double sum = 0;

        void add(const Part& other) { n += other.n, weight += other.weight, sum += other.sum; }
    };

    // Adds a node up; whether it is a leaf for certain.
    bool ends(const std::int32_t* rows, std::int64_t n, std::int64_t depth) {
        all_ = {};
        double squares = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            parts_[i] = {1, weights_[rows[i]], pull_[rows[i]]};
            all_.add(parts_[i]);
            squares += parts_[i].sum * target_[rows[i]];
        }
        const double total = static_cast<double>(all_.weight), mean = all_.sum / total;
        return depth >= rules_.max_depth || n < rules_.min_samples_split || squares / total - mean * mean <= PURE;
    }

    // The best split of a node: the first one of equals, by columns in the order in which they are drawn.
    Split best(const std::int32_t* rows, std::int64_t n, std::uint64_t key) {
        rows_of_node_ = rows, n_ = n, key_ = key;
        split_ = {};
        top_ = IMPOSSIBLE;
        varies_ = false;
        const std::int64_t d = pool_.n_columns;
        std::int64_t taken = 0;
        for (; taken < d && (taken < rules_.max_features || !varies_); ++taken) {
            const std::uint64_t left = static_cast<std::uint64_t>(d - taken), chance = drawn(key, taken) >> 32;
            others_[taken] = static_cast<std::int32_t>(taken + static_cast<std::int64_t>((chance * left) >> 32));
            std::swap(order_[taken], order_[others_[taken]]);
            look_at(order_[taken]);
        }
        while (taken--) std::swap(order_[taken], order_[others_[taken]]);  // the columns in their own order again
        if (split_.column >= 0) split_.bin = bin();
        return split_;
    }

    void look_at(std::int32_t column) {
        const std::int64_t n_bins = pool_.n_bins[column];
        if (n_bins < 2) return;
        if (drawn_in(column)) return cut(column);
        if (n_ <= FEW || n_ * SPARSE < n_bins) return scan_sorted(column);
        scan_counted(column);
    }

    static constexpr std::int64_t FEW = 8;       // records of a node that are sorted,
    static constexpr std::int64_t SPARSE = 256;  // as are those of one with so many times more codes

    static constexpr int LANES = 4;

    // What is below a code while a column is met in order.
    struct Below : Part {
        std::int32_t first = -1, last = -1;
    };

    // Records of another code are met: behind those before it the column may be split.
    void meet(Below& below, std::int32_t column, std::int32_t code, const Part& part) {
        const float* const values = pool_.values + first_bin_[column];
        if (below.first < 0)
            below.first = code;
        else if (code != below.last && values[code] > values[below.last] + NEAR)
            offer(column, below.last, code, below);
        below.last = code;
        below.add(part);
    }

    void vary(const Below& below, std::int32_t column) {
        const float* const values = pool_.values + first_bin_[column];
        varies_ |= values[below.last] > values[below.first] + NEAR;
    }

    void scan_sorted(std::int32_t column) {
        const Code* const codes = pool_.column(column);
        for (std::int64_t i = 0; i < n_; ++i)
            keys_[i] = std::uint64_t{static_cast<std::uint32_t>(codes[rows_of_node_[i]])} << 32 | static_cast<std::uint64_t>(i);
        std::sort(keys_.begin(), keys_.begin() + n_);
        Below below;
        for (std::int64_t i = 0; i < n_; ++i)
            meet(below, column, static_cast<std::int32_t>(keys_[i] >> 32), parts_[keys_[i] & 0xFFFFFFFFU]);
        vary(below, column);
    }

    void scan_counted(std::int32_t column) {
        const Code* const codes = pool_.column(column);
        for (std::int64_t i = 0; i < n_; ++i) {
            const std::int64_t code = codes[rows_of_node_[i]];
            cells_[code].add(parts_[i]);
            filled_[code >> 6] |= std::uint64_t{1} << (code & 63);
        }
        Below below;
        for (std::int64_t word = 0; word * 64 < pool_.n_bins[column]; ++word)
            each_bit(std::exchange(filled_[word], 0), [&](int bit) {
                const auto code = static_cast<std::int32_t>(64 * word + bit);
                meet(below, column, code, std::exchange(cells_[code], Part{}));
            });
        vary(below, column);
    }

    // Splits a column at one threshold drawn between its lowest and its highest value.
    void cut(std::int32_t column) {
        const Code* const codes = pool_.column(column);
        const float* const values = pool_.values + first_bin_[column];
        std::int32_t low = std::numeric_limits<std::int32_t>::max(), high = 0;
        for (std::int64_t i = 0; i < n_; ++i) {
            const std::int32_t code = codes[rows_of_node_[i]];
            held_[i] = values[code];
            low = std::min(low, code);
            high = std::max(high, code);
        }
        if (!(values[high] > values[low] + NEAR)) return;
        varies_ = true;
        const double threshold = value_drawn(values, low, high, chance_of(column));
        const float highest = values[high];
        Part lanes[LANES];  // side by side: no sum waits for another one
        for (std::int64_t i = 0; i < n_; ++i) {
            const std::int32_t below = held_[i] <= threshold && held_[i] < highest;
            Part& lane = lanes[i % LANES];
            lane.n += below;
            lane.weight += below * parts_[i].weight;
            lane.sum += below * parts_[i].sum;
        }
        for (int lane = 1; lane < LANES; ++lane) lanes[0].add(lanes[lane]);
        offer(column, low, high, lanes[0]);
    }

    std::uint64_t chance_of(std::int32_t column) const { return drawn(key_, pool_.n_columns + 2 + column); }

    // Takes a split, if it is the best so far: between two codes, halfway or where it was drawn.
    void offer(std::int32_t column, std::int32_t low, std::int32_t high, const Part& below) {
        if (std::min<std::int64_t>(below.n, n_ - below.n) < rules_.min_samples_leaf) return;
        const double above = all_.sum - below.sum, n_below = static_cast<double>(below.weight);
        const double score = below.sum * below.sum / n_below + above * above / static_cast<double>(all_.weight - below.weight);
        if (!(score > top_)) return;
        top_ = score;
        split_ = {column, low};
        high_ = high;
    }

    // The code up to which records go left.
    std::int32_t bin() const {
        const float* const values = pool_.values + first_bin_[split_.column];
        if (!drawn_in(split_.column)) return code_between(values, split_.bin, high_);
        return code_drawn(values, split_.bin, high_, chance_of(split_.column));
    }

    bool drawn_in(std::int32_t column) const { return rules_.drawn_thresholds && pool_.n_bins[column] > 2; }

    const Pool<Code>& pool_;
    const Rules& rules_;
    const double* const target_;                 // [rows]
    const Columns<Code> columns_;
    std::vector<std::int64_t> first_bin_;        // [columns + 1]: where each column's values begin
    std::vector<std::int32_t> order_, others_;   // columns, and with which each drawn one changed its place
    std::vector<double> pull_;                   // [rows]: values by how often they count
    std::vector<std::int32_t> rows_, queries_, room_;
    std::vector<float> held_;                    // values of the records of the node at hand
    std::vector<std::uint64_t> keys_, filled_;   // [rows]; which codes are there
    std::vector<Part> cells_;                    // [codes]
    std::vector<Part> parts_;                    // of each record of the node at hand
    std::vector<Open> waiting_;
    const std::int32_t* weights_ = nullptr;      // [rows]
    // of the node at hand
    Part all_;
    const std::int32_t* rows_of_node_ = nullptr;
    std::int64_t n_ = 0;
    std::uint64_t key_ = 0;
    bool varies_ = false;                        // whether the lowest and the highest value of a column are told apart
    Split split_;                                // with the code above which it is,
    std::int32_t high_ = -1;                     // and that below which it is
    double top_ = 0;
};

}  // namespace

// Adds to the answers [queries] the means of the leaves that queries reach in trees, see `leakgauge_trees_ask`, where rows
// have values [rows]. Returns 0, or -1 without memory.
extern "C" std::int64_t leakgauge_regression_ask(POOL, const double* target, const std::uint64_t* accepted,
                                                 std::int64_t n_draws, std::int64_t n_trees, const std::uint64_t* keys,
                                                 std::int64_t n_queries, const void* asked,
                                                 const std::uint64_t* asked_bits, double* answers) {
    return with_codes(n_bytes, [&](auto code) {
        using Code = decltype(code);
        const auto pool = POOL_OF(Code);
        std::vector<std::int32_t> weights(n_rows);
        std::transform(accepted, accepted + n_rows, weights.begin(), [](std::uint64_t chance) { return chance > 0; });
        Regression<Code> regression(pool, *rules, target);
        const Columns<Code> queries{n_queries, static_cast<const Code*>(asked), asked_bits};
        for (std::int64_t tree = 0; tree < n_trees; ++tree) {
            if (n_draws) draw_bag(accepted, n_rows, n_draws, drawn(keys[tree], 1), weights.data());
            regression.ask(weights.data(), drawn(keys[tree], 0), queries, answers);
        }
        return std::int64_t{0};
    });
}
