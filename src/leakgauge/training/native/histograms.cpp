// Gradient boosting on histograms as scikit-learn does it, to the last bit: columns are cut into at most 255 bins and one for
// missing values, and a tree is grown where a split gains most (Chen and Guestrin 2016, equation 7; Ke et al. 2017). What
// decides bits is kept: gradients in single precision, their sums over bins in double precision and in the order of records,
// the smaller side of a node summed up and the other one found by subtraction, and the order of a heap among equal gains.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "sums.hpp"

namespace {

enum Loss : std::int64_t { SQUARED_ERROR, BINOMIAL, MULTINOMIAL };

// The least curvature of a side of a split, and what is added to that of a leaf.
constexpr double LEAST_CURVATURE = 1e-3, NONZERO = 1e-15;

struct Rules {
    std::int64_t n_bins, max_leaf_nodes, max_depth, min_samples_leaf, n_stages, n_outputs, loss;
};

// The gradient and the curvature of the loss in single precision. Numbers on their way into a vector would not be rounded by
// every compiler (GCC 12 takes the way to single precision and back for nothing), those in memory are.
struct Slopes {
    float pull, curvature;
};

Slopes single(double pull, double curvature) { return {static_cast<float>(pull), static_cast<float>(curvature)}; }

// Sums of both.
typedef double Sums __attribute__((vector_size(16)));

struct Bin {
    Sums sum = {0, 0};
    std::int64_t n = 0;

    // Whether nothing is in it: no record, and no sum that rounding left over.
    bool empty() const { return n == 0 && sum[0] == 0 && sum[1] == 0; }
};

// The bins of all columns, and which of them are not empty: of a small node few are.
struct Histogram {
    std::vector<Bin> bins;
    std::vector<std::uint64_t> filled;

    Histogram() = default;
    explicit Histogram(std::int64_t n) : bins(n), filled((n + 63) / 64) {}

    void mark(std::int64_t b) { filled[b >> 6] |= std::uint64_t{1} << (b & 63); }

    // Those of a part of a word that are filled.
    std::uint64_t word(std::int64_t w, std::int64_t begin, std::int64_t end) const {
        std::uint64_t bits = filled[w];
        if (w == begin >> 6) bits &= ~std::uint64_t{0} << (begin & 63);
        if (w == end >> 6) bits &= (std::uint64_t{1} << (end & 63)) - 1;
        return bits;
    }

    // Calls with each filled bin from one up to another, as long as it is told to go on.
    template <typename Function>
    void upwards(std::int64_t begin, std::int64_t end, Function&& goes_on) const {
        for (std::int64_t w = begin >> 6; 64 * w < end; ++w)
            for (std::uint64_t bits = word(w, begin, end); bits; bits &= bits - 1)
                if (!goes_on(64 * w + __builtin_ctzll(bits))) return;
    }

    template <typename Function>
    void downwards(std::int64_t begin, std::int64_t end, Function&& goes_on) const {
        for (std::int64_t w = (end - 1) >> 6; w >= begin >> 6 && begin < end; --w)
            for (std::uint64_t bits = word(w, begin, end); bits;) {
                const std::int64_t last = 63 - __builtin_clzll(bits);
                if (!goes_on(64 * w + last)) return;
                bits ^= std::uint64_t{1} << last;
            }
    }

    void clear() {
        upwards(0, static_cast<std::int64_t>(bins.size()), [&](std::int64_t b) { return bins[b] = Bin{}, true; });
        std::fill(filled.begin(), filled.end(), 0);
    }

    void operator-=(const Histogram& other) {
        other.upwards(0, static_cast<std::int64_t>(bins.size()), [&](std::int64_t b) {
            bins[b].sum -= other.bins[b].sum;
            bins[b].n -= other.bins[b].n;
            if (bins[b].empty()) filled[b >> 6] ^= std::uint64_t{1} << (b & 63);
            return true;
        });
    }
};

// Sums of some records.
struct Side {
    double pull = 0, curvature = 0;
    std::int64_t n = 0;

    void add(const Bin& bin) {
        n += bin.n;
        curvature += bin.sum[1];
        pull += bin.sum[0];
    }
};

struct Split {
    double gain = 0;
    std::int64_t column = -1;  // -1: none gains anything
    std::int64_t bin = 0;      // records of this bin and those below go left
    bool missing_left = false;
    Side left;
};

struct Node {
    std::int64_t begin, end, depth, place;  // of its records, and of itself in the tree
    Side sum;
    double value;
    Split split;
    Histogram histogram;

    std::int64_t size() const { return end - begin; }
};

// What queries go through; a leaf leads to itself.
struct Step {
    std::int32_t column = 0, bin = 0, missing = 0;  // `missing`: the bin of missing values if these go left, else none
    std::int32_t next[2];                           // right, left
    double value = 0;

    bool goes_left(std::int32_t code) const { return (code <= bin) | (code == missing); }
};

constexpr std::int32_t NO_BIN = -1;

struct Table {
    std::int64_t n_columns, n_bins;  // all bins, as scikit-learn lays them out for each column: the last is for missing values
    const std::uint32_t* n_used;     // [columns]: bins but that for missing values, which stands behind them here
    const std::uint8_t* missing;     // [columns]: whether values of training records are missing
    std::vector<std::int64_t> first;  // [columns + 1]: where bins begin
    std::vector<std::uint8_t> records;  // [columns, records]
    std::vector<std::uint8_t> side_by_side;  // the same, those of up to eight columns of a record together
    std::vector<std::uint8_t> queries;       // [queries, columns]

    Table(std::int64_t n_columns, std::int64_t n_bins, const std::uint32_t* n_used, const std::uint8_t* missing,
          std::int64_t n, const std::uint8_t* codes, std::int64_t n_queries, const std::uint8_t* asked)
        : n_columns(n_columns), n_bins(n_bins), n_used(n_used), missing(missing), first(1), records(codes, codes + n_columns * n),
          side_by_side(n_columns * n), queries(n_columns * n_queries) {
        for (std::int64_t j = 0; j < n_columns; ++j) {
            first.push_back(first.back() + n_used[j] + 1);
            for (std::int64_t i = 0; i < n; ++i) records[j * n + i] = place(j, records[j * n + i]);
            for (std::int64_t i = 0; i < n_queries; ++i) queries[i * n_columns + j] = place(j, asked[j * n_queries + i]);
        }
        for (std::int64_t j = 0, width; j < n_columns; j += width) {
            width = together(j);
            for (std::int64_t i = 0; i < n; ++i)
                for (std::int64_t lane = 0; lane < width; ++lane)
                    side_by_side[j * n + i * width + lane] = records[(j + lane) * n + i];
        }
    }

    // How many columns stand side by side from one on.
    std::int64_t together(std::int64_t j) const {
        const std::int64_t left = n_columns - j;
        return left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    }

  private:
    std::uint8_t place(std::int64_t j, std::uint8_t code) const {
        return code == n_bins - 1 ? static_cast<std::uint8_t>(n_used[j]) : code;
    }
};

class Boosting {
  public:
    Boosting(const Table& table, const Rules& rules, double rate, double penalty, std::int64_t n, const double* target,
             const double* initial, std::int64_t n_queries, double* answers)
        : table_(table), rules_(rules), rate_(rate), penalty_(penalty), n_(n), k_(rules.n_outputs), target_(target),
          n_queries_(n_queries), answers_(answers), raw_(n * k_), slopes_(n * k_), at_(n), right_(n), shares_(k_) {
        for (std::int64_t output = 0; output < k_; ++output)
            std::fill_n(raw_.begin() + output * n, n, initial[output]);
        for (std::int64_t i = 0; i < n_queries; ++i) std::copy(initial, initial + k_, answers + i * k_);
        const std::int64_t most = 1 + *std::max_element(table.n_used, table.n_used + table.n_columns);
        found_.resize(most);
        touched_.resize(table.first.back());
    }

    void train() {
        for (std::int64_t stage = 0; stage < rules_.n_stages; ++stage) {
            differentiate();
            bool grows = false;
            for (std::int64_t output = 0; output < k_; ++output) grows |= tree(output);
            if (!grows) return;  // nor will any later tree
        }
    }

  private:
    static constexpr std::int64_t SOME = 16;

    // Gradients and curvatures of the loss, of all records and outputs.
    void differentiate() {
        if (rules_.loss == SQUARED_ERROR) {
            for (std::int64_t i = 0; i < n_; ++i) slopes_[i] = single(raw_[i] - target_[i], 1.0);
        } else if (rules_.loss == BINOMIAL) {
            for (std::int64_t i = 0; i < n_; ++i) {
                const double y = target_[i], raw = raw_[i];
                double pull, curvature;
                if (raw > -37) {
                    const double odds = std::exp(-raw), whole = 1 + odds;
                    pull = ((1 - y) - y * odds) / whole;
                    curvature = odds / (whole * whole);
                } else {
                    curvature = std::exp(raw);
                    pull = curvature - y;
                }
                slopes_[i] = single(pull, curvature);
            }
        } else {
            for (std::int64_t i = 0; i < n_; ++i) {
                double most = raw_[i], total = 0;
                for (std::int64_t c = 1; c < k_; ++c)
                    if (most < raw_[c * n_ + i]) most = raw_[c * n_ + i];
                for (std::int64_t c = 0; c < k_; ++c) total += shares_[c] = std::exp(raw_[c * n_ + i] - most);
                for (std::int64_t c = 0; c < k_; ++c) {
                    const double share = shares_[c] / total;
                    const double own = target_[i] == static_cast<double>(c) ? 1.0 : 0.0;
                    slopes_[c * n_ + i] = single(share - own, share * (1.0 - share));
                }
            }
        }
    }

    // Grows a tree and adds it to predictions; whether it has a split.
    bool tree(std::int64_t output) {
        slopes_of_ = slopes_.data() + output * n_;
        for (std::int64_t i = 0; i < n_; ++i) at_[i] = static_cast<std::int32_t>(i);
        steps_.assign(1, leaf(0));
        waiting_.clear();
        n_leaves_ = 0;
        Node root{0, n_, 0, 0, {}, 0.0, {}, nothing()};
        sum_up(root);
        root.sum = whole(root.histogram.bins);
        if (n_ < 2 * rules_.min_samples_leaf || root.sum.curvature < LEAST_CURVATURE)
            settle(root, output);
        else
            look_at(std::move(root), output);
        while (!waiting_.empty()) split_next(output);
        if (steps_.size() == 1) return false;
        for (std::int64_t i = 0; i < n_queries_; i += SOME) ask(i, std::min(SOME, n_queries_ - i), output);
        return true;
    }

    // Sends some queries through the tree, side by side until all have arrived.
    void ask(std::int64_t first, std::int64_t n, std::int64_t output) {
        const Step* const steps = steps_.data();
        const std::uint8_t* const codes = table_.queries.data() + first * table_.n_columns;
        std::int32_t at[SOME] = {};
        for (bool moved = true; moved;) {
            std::int32_t changed = 0;
            for (std::int64_t i = 0; i < n; ++i) {
                const Step& step = steps[at[i]];
                const std::int32_t next = step.next[step.goes_left(codes[i * table_.n_columns + step.column])];
                changed |= next ^ at[i];
                at[i] = next;
            }
            moved = changed != 0;
        }
        for (std::int64_t i = 0; i < n; ++i) answers_[(first + i) * k_ + output] += steps[at[i]].value;
    }

    // Sums of all records, as numpy adds up the bins of the first column with those that nobody is in.
    Side whole(const std::vector<Bin>& bins) const {
        std::vector<double> pulls(table_.n_bins), curvatures(table_.n_bins);
        const std::int64_t n_used = table_.n_used[0];
        for (std::int64_t b = 0; b <= n_used; ++b) {
            const std::int64_t place = b == n_used ? table_.n_bins - 1 : b;
            pulls[place] = bins[b].sum[0];
            curvatures[place] = bins[b].sum[1];
        }
        return {summed(pulls.data(), table_.n_bins), summed(curvatures.data(), table_.n_bins), n_};
    }

    Histogram nothing() {
        if (free_.empty()) return Histogram(table_.first.back());
        Histogram found = std::move(free_.back());
        free_.pop_back();
        return found;
    }

    void give_back(Histogram& histogram) {
        if (histogram.bins.empty()) return;
        histogram.clear();
        free_.push_back(std::move(histogram));
        histogram = Histogram();
    }

    // The bins of a node, from its records in their order.
    void sum_up(Node& node) {
        Histogram& found = node.histogram;
        const std::int64_t n_bins = table_.first.back();
        const bool few = node.size() * table_.n_columns < n_bins;
        n_touched_ = 0;
        for (std::int64_t j = 0, width; j < table_.n_columns; j += width) {
            width = table_.together(j);
            if (few) touch(j, width, node);
            if (width == 8) sum_up<8>(j, node);
            if (width == 4) sum_up<4>(j, node);
            if (width == 2) sum_up<2>(j, node);
            if (width == 1) sum_up<1>(j, node);
        }
        if (few)
            for (std::int64_t i = 0; i < n_touched_; ++i) found.mark(touched_[i]);
        else
            for (std::int64_t b = 0; b < n_bins; ++b) found.filled[b >> 6] |= std::uint64_t{found.bins[b].n != 0} << (b & 63);
    }

    // Notes the bins of the records of a node.
    void touch(std::int64_t j, std::int64_t width, const Node& node) {
        const std::uint8_t* const codes = table_.side_by_side.data() + j * n_;
        for (std::int64_t i = node.begin; i < node.end; ++i)
            for (std::int64_t lane = 0; lane < width; ++lane)
                touched_[n_touched_++] = static_cast<std::int32_t>(table_.first[j + lane] + codes[at_[i] * width + lane]);
    }

    // Some columns together: one does not wait for the sums of another.
    template <std::int64_t WIDTH>
    void sum_up(std::int64_t j, Node& node) {
        Bin* bins[WIDTH];
        for (std::int64_t lane = 0; lane < WIDTH; ++lane) bins[lane] = node.histogram.bins.data() + table_.first[j + lane];
        const std::uint8_t* const codes = table_.side_by_side.data() + j * n_;
        for (std::int64_t i = node.begin; i < node.end; ++i) {
            const std::int64_t row = at_[i];
            const Sums slopes = {slopes_of_[row].pull, slopes_of_[row].curvature};
            for (std::int64_t lane = 0; lane < WIDTH; ++lane) {
                Bin& bin = bins[lane][codes[row * WIDTH + lane]];
                bin.sum += slopes;
                ++bin.n;
            }
        }
    }

    // Finds the best split of a node, which then waits for its turn or is a leaf.
    void look_at(Node&& node, std::int64_t output) {
        for (std::int64_t j = 0; j < table_.n_columns; ++j) {
            upwards(j, node);
            if (table_.missing[j]) downwards(j, node);
        }
        if (node.split.column < 0)
            settle(node, output);
        else
            push(std::move(node));
    }

    // Splits of a column with missing values on the right. After an empty bin nothing has changed, and no gain is greater.
    void upwards(std::int64_t j, Node& node) {
        const std::int64_t first = table_.first[j], end = first + table_.n_used[j] - 1 + table_.missing[j];
        std::int64_t n_found = 0;
        Side left;
        node.histogram.upwards(first, end, [&](std::int64_t b) {
            left.add(node.histogram.bins[b]);
            if (left.n < rules_.min_samples_leaf) return true;
            const Side right = less(node.sum, left);
            if (right.n < rules_.min_samples_leaf) return false;
            if (left.curvature < LEAST_CURVATURE) return true;
            if (right.curvature < LEAST_CURVATURE) return false;
            found_.put(n_found++, b - first, left, right);
            return true;
        });
        choose(j, n_found, false, node);
    }

    // Those with missing values on the left.
    void downwards(std::int64_t j, Node& node) {
        const std::int64_t first = table_.first[j];
        std::int64_t n_found = 0;
        Side right;
        node.histogram.downwards(first + 1, first + table_.n_used[j], [&](std::int64_t b) {
            right.add(node.histogram.bins[b]);
            if (right.n < rules_.min_samples_leaf) return true;
            const Side left = less(node.sum, right);
            if (left.n < rules_.min_samples_leaf) return false;
            if (right.curvature < LEAST_CURVATURE) return true;
            if (left.curvature < LEAST_CURVATURE) return false;
            found_.put(n_found++, b - 1 - first, left, right);
            return true;
        });
        choose(j, n_found, true, node);
    }

    double value(double pull, double curvature) const { return -pull / (curvature + penalty_ + NONZERO); }

    double loss(double pull, double curvature) const { return pull * value(pull, curvature); }

    // Takes the split of a column that gains most, the first one of several, if it gains more than any before.
    void choose(std::int64_t j, std::int64_t n_found, bool missing_left, Node& node) {
        const double own = node.value * node.sum.pull;
        const double *pull_left = found_.pull_left.data(), *curvature_left = found_.curvature_left.data();
        const double *pull_right = found_.pull_right.data(), *curvature_right = found_.curvature_right.data();
        double* gains = found_.gain.data();
        for (std::int64_t i = 0; i < n_found; ++i)
            gains[i] = own - loss(pull_left[i], curvature_left[i]) - loss(pull_right[i], curvature_right[i]);
        for (std::int64_t i = 0; i < n_found; ++i)
            if (gains[i] > node.split.gain)
                node.split = {gains[i], j, found_.bin[i], missing_left, {pull_left[i], curvature_left[i], found_.n_left[i]}};
    }

    static Side less(const Side& all, const Side& some) {
        return {all.pull - some.pull, all.curvature - some.curvature, all.n - some.n};
    }

    // Splits the waiting node that gains most.
    void split_next(std::int64_t output) {
        Node node = pop();
        const Split& split = node.split;
        const std::int64_t middle = parted(node), depth = node.depth + 1;
        const auto left_place = static_cast<std::int64_t>(steps_.size());
        const Side right_sum = less(node.sum, split.left);
        Node left{node.begin, middle, depth, left_place, split.left, value(split.left.pull, split.left.curvature), {}, {}};
        Node right{middle, node.end, depth, left_place + 1, right_sum, value(right_sum.pull, right_sum.curvature), {}, {}};
        const bool missing_left = table_.missing[split.column] ? split.missing_left : left.size() > right.size();
        Step& step = steps_[node.place];
        step = step_of(split, missing_left);
        step.next[0] = static_cast<std::int32_t>(left_place + 1);
        step.next[1] = static_cast<std::int32_t>(left_place);
        for (std::int64_t place : {left_place, left_place + 1}) steps_.push_back(leaf(place));
        if (n_leaves_ + static_cast<std::int64_t>(waiting_.size()) + 2 == rules_.max_leaf_nodes) {
            give_back(node.histogram);
            settle(left, output);
            settle(right, output);
            for (Node& other : waiting_) settle(other, output);
            waiting_.clear();
            return;
        }
        const bool deep = depth == rules_.max_depth;
        const bool splits_left = !deep && left.size() >= 2 * rules_.min_samples_leaf;
        const bool splits_right = !deep && right.size() >= 2 * rules_.min_samples_leaf;
        if (splits_left || splits_right) {
            Node &smaller = left.size() < right.size() ? left : right, &larger = left.size() < right.size() ? right : left;
            smaller.histogram = nothing();
            sum_up(smaller);
            larger.histogram = std::move(node.histogram);
            larger.histogram -= smaller.histogram;
        } else {
            give_back(node.histogram);
        }
        if (!splits_left) settle(left, output);
        if (!splits_right) settle(right, output);
        if (splits_left) look_at(std::move(left), output);
        if (splits_right) look_at(std::move(right), output);
    }

    Step step_of(const Split& split, bool missing_left) const {
        Step step;
        step.column = static_cast<std::int32_t>(split.column);
        step.bin = static_cast<std::int32_t>(split.bin);
        step.missing = missing_left ? static_cast<std::int32_t>(table_.n_used[split.column]) : NO_BIN;
        return step;
    }

    static Step leaf(std::int64_t place) {
        Step step;
        step.next[0] = step.next[1] = static_cast<std::int32_t>(place);
        return step;
    }

    // Parts the records of a node, each side in their order; where those on the right begin.
    std::int64_t parted(const Node& node) {
        const Step step = step_of(node.split, node.split.missing_left);
        const std::uint8_t* codes = table_.records.data() + node.split.column * n_;
        std::int64_t n_left = 0, n_right = 0;
        for (std::int64_t i = node.begin; i < node.end; ++i) {
            const std::int32_t row = at_[i];
            const bool left = step.goes_left(codes[row]);
            at_[node.begin + n_left] = right_[n_right] = row;
            n_left += left;
            n_right += !left;
        }
        std::copy_n(right_.begin(), n_right, at_.begin() + node.begin + n_left);
        return node.begin + n_left;
    }

    // Makes a leaf of a node, which adds to the predictions of its records.
    void settle(Node& node, std::int64_t output) {
        ++n_leaves_;
        give_back(node.histogram);
        const double value = node.value * rate_;
        steps_[node.place].value = value;
        double* raw = raw_.data() + output * n_;
        for (std::int64_t i = node.begin; i < node.end; ++i) raw[at_[i]] += value;
    }

    static bool before(const Node& a, const Node& b) { return a.split.gain > b.split.gain; }

    // A heap as Python's heapq has it, where the order of equal gains follows from how nodes are moved.
    void push(Node&& node) {
        waiting_.push_back(std::move(node));
        rise(static_cast<std::int64_t>(waiting_.size()) - 1);
    }

    void rise(std::int64_t place) {
        for (std::int64_t above; place > 0; place = above) {
            above = (place - 1) / 2;
            if (!before(waiting_[place], waiting_[above])) return;
            std::swap(waiting_[place], waiting_[above]);
        }
    }

    Node pop() {
        Node last = std::move(waiting_.back());
        waiting_.pop_back();
        if (waiting_.empty()) return last;
        std::swap(waiting_[0], last);
        const auto size = static_cast<std::int64_t>(waiting_.size());
        std::int64_t place = 0;
        for (std::int64_t below; (below = 2 * place + 1) < size; place = below) {  // down to the end, then up again
            if (below + 1 < size && !before(waiting_[below], waiting_[below + 1])) ++below;
            std::swap(waiting_[place], waiting_[below]);
        }
        rise(place);
        return last;
    }

    // Splits of a column that leave enough on both sides.
    struct Found {
        std::vector<double> pull_left, curvature_left, pull_right, curvature_right, gain;
        std::vector<std::int64_t> bin, n_left;

        void resize(std::int64_t most) {
            for (auto* part : {&pull_left, &curvature_left, &pull_right, &curvature_right, &gain}) part->resize(most);
            bin.resize(most);
            n_left.resize(most);
        }

        void put(std::int64_t place, std::int64_t its_bin, const Side& left, const Side& right) {
            pull_left[place] = left.pull;
            curvature_left[place] = left.curvature;
            pull_right[place] = right.pull;
            curvature_right[place] = right.curvature;
            bin[place] = its_bin;
            n_left[place] = left.n;
        }
    };

    const Table& table_;
    const Rules& rules_;
    const double rate_, penalty_;
    const std::int64_t n_, k_;
    const double* target_;  // [records]: numbers, 0 and 1, or places of classes
    const std::int64_t n_queries_;
    double* answers_;                     // [queries, outputs]
    std::vector<double> raw_;             // [outputs, records]
    std::vector<Slopes> slopes_;          // likewise, in single precision
    const Slopes* slopes_of_ = nullptr;   // of the output at hand
    std::vector<std::int32_t> at_, right_;     // records, those of a node side by side in their order
    std::vector<double> shares_;
    std::vector<Step> steps_;  // of the tree at hand
    std::vector<Node> waiting_;
    std::int64_t n_leaves_ = 0;
    std::vector<Histogram> free_;          // empty ones
    std::vector<std::int32_t> touched_;    // bins of the records of a small node
    std::int64_t n_touched_ = 0;
    Found found_;
};

}  // namespace

// Boosts trees on records whose bins stand column by column [columns, records], and answers queries [columns, queries] by
// their raw predictions [queries, outputs], which begin at `initial` [outputs]. Returns 0, or -1 without memory.
extern "C" std::int64_t leakgauge_boosted_on_bins(std::int64_t n, std::int64_t n_columns, const std::uint8_t* codes,
                                                  const std::uint32_t* n_used, const std::uint8_t* missing,
                                                  const Rules* rules, double rate, double penalty, const double* target,
                                                  const double* initial, std::int64_t n_queries, const std::uint8_t* asked,
                                                  double* answers) {
    try {
        const Table table(n_columns, rules->n_bins, n_used, missing, n, codes, n_queries, asked);
        Boosting(table, *rules, rate, penalty, n, target, initial, n_queries, answers).train();
        return 0;
    } catch (...) {
        return -1;
    }
}
