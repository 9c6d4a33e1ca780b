// Gradient boosting as scikit-learn does it, on ranked features: regression trees on the gradient of a loss, whose leaves
// take one step of Newton's method. Its twin is scikit-learn, whose random numbers these are. Of splits that are equally good
// rounding chooses there, by the order in which a node was sorted last. Leaves of classifiers do not depend on that order, so
// that it is needed only where bounds of rounding leave the choice open: such nodes, and those above them, are gone through
// once more as scikit-learn does. Leaves of regressors are sums in that order, which is kept for distinct values alone.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "splitting.hpp"
#include "sums.hpp"

namespace {

enum Loss : std::int64_t { SQUARED_ERROR, BINOMIAL, MULTINOMIAL };

// What scikit-learn takes for no impurity, and for no curvature.
constexpr double PURE = std::numeric_limits<double>::epsilon(), FLAT = 1e-150;

struct Rules {
    std::int64_t max_features, max_depth, min_samples_split, min_samples_leaf, n_stages, n_outputs, loss;
};

// The random numbers of one tree of scikit-learn: xorshift (Marsaglia 2003), in 31 bits.
class Random {
  public:
    explicit Random(std::uint32_t seed) : state_(seed) {}

    std::int64_t between(std::int64_t low, std::int64_t high) {
        if (state_ == 0) state_ = 1;
        state_ ^= state_ << 13;
        state_ ^= state_ >> 17;
        state_ ^= state_ << 5;
        return low + (state_ & 0x7FFFFFFFU) % (high - low);
    }

  private:
    std::uint32_t state_;
};

constexpr double IMPOSSIBLE = -std::numeric_limits<double>::infinity();

struct Split {
    std::int64_t column = -1;  // -1: a leaf
    std::int32_t code = 0;     // records with a code of at most this go left
    double score = IMPOSSIBLE, next = IMPOSSIBLE;  // its own, and the best of all others
};

// Sorts keys with what belongs to them, equal ones into the order in which scikit-learn leaves them: quicksort in three parts
// by the median of three, insertion where few are left, and a heap beyond a depth (Musser 1997).
class Sorting {
  public:
    static void sort(std::int32_t* keys, std::int32_t* held, std::int64_t n) {
        if (n > 1) Sorting{keys, held}.part(0, n, 2 * static_cast<int>(std::log2(n)));
    }

  private:
    static constexpr std::int64_t FEW = 15;

    std::int32_t *keys, *held;

    Sorting(std::int32_t* keys, std::int32_t* held) : keys(keys), held(held) {}

    void exchange(std::int64_t a, std::int64_t b) const {
        std::swap(keys[a], keys[b]);
        std::swap(held[a], held[b]);
    }

    void part(std::int64_t begin, std::int64_t end, int depth) const {
        for (; end - begin > FEW; --depth) {
            if (depth <= 0) return heap(begin, end - begin);
            const std::int32_t a = keys[begin], b = keys[begin + (end - begin) / 2], c = keys[end - 1];
            const std::int32_t pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
            std::int64_t low = begin, high = end;
            for (std::int64_t i = begin; i < high;) {
                if (keys[i] < pivot)
                    exchange(i++, low++);
                else if (keys[i] > pivot)
                    exchange(i, --high);
                else
                    ++i;
            }
            part(begin, low, depth - 1);
            begin = high;
        }
        for (std::int64_t i = begin + 1; i < end; ++i)
            for (std::int64_t j = i; j > begin && keys[j - 1] > keys[j]; --j) exchange(j, j - 1);
    }

    void heap(std::int64_t first, std::int64_t n) const {
        for (std::int64_t root = (n - 2) / 2; root >= 0; --root) sink(first, root, n);
        for (std::int64_t last = n - 1; last > 0; --last) {
            exchange(first, first + last);
            sink(first, 0, last);
        }
    }

    void sink(std::int64_t first, std::int64_t root, std::int64_t n) const {
        for (std::int64_t most = root;; root = most) {
            for (std::int64_t child = 2 * root + 1; child < std::min(n, 2 * root + 3); ++child)
                if (keys[first + most] < keys[first + child]) most = child;
            if (most == root) return;
            exchange(first + root, first + most);
        }
    }
};

// Columns stand one after the other, so that what a node sums up of one of them lies together.
template <typename Code>
struct Table {
    std::int64_t n_columns;
    const std::int32_t* n_codes;           // [columns]
    const float* values;                   // what each code of each column stands for, ascending
    std::vector<const Code*> records;      // [columns][records]
    std::vector<const Code*> queries;      // [columns][queries]
    std::vector<std::int64_t> first_code;  // [columns]: where its values begin
    std::vector<std::vector<std::int32_t>> higher;  // [columns]: who has the higher of two values
};

template <typename Code>
class Boosting {
  public:
    Boosting(const Table<Code>& table, const Rules& rules, double rate, std::int64_t n, const double* target,
             const double* initial, const std::uint32_t* seeds, std::int64_t n_queries, double* answers)
        : table_(table), rules_(rules), rate_(rate), n_(n), k_(rules.n_outputs), target_(target), seeds_(seeds),
          n_queries_(n_queries), answers_(answers), raw_(n * k_), pull_(n * k_), pulls_(n), at_(n), node_(n),
          gradient_(n), curvature_(n), asked_(n_queries), columns_(table.n_columns), constant_(table.n_columns), there_(n),
          keys_(n) {
        for (std::int64_t i = 0; i < n; ++i) std::copy(initial, initial + k_, raw_.begin() + i * k_);
        for (std::int64_t i = 0; i < n_queries; ++i) std::copy(initial, initial + k_, answers + i * k_);
        const std::int64_t most = *std::max_element(table.n_codes, table.n_codes + table.n_columns);
        totals_.assign(most, Total{});
        filled_.assign((most + 63) / 64, 0);
    }

    void train() {
        for (std::int64_t stage = 0; stage < rules_.n_stages; ++stage) {
            descend();
            for (std::int64_t output = 0; output < k_; ++output)
                grow(output, Random(seeds_[stage * k_ + output]));
        }
    }

  private:
    struct Total {
        double sum = 0;
        std::int64_t n = 0;
    };

    struct Node {
        std::int64_t begin, end, first_query, last_query, depth, n_constant;
        double impurity;                // as scikit-learn rounds it, for squared errors
        std::int64_t above = -1;        // the step that made it, -1 for the root
        bool is_low = false;            // the lower side of it
        double slack = 0;               // of its impurity there and as it is found here, at most
        double sum = 0, squares = 0, size_of_sum = 0, largest = 0;  // of its gradient; the sum of magnitudes, and the largest

        std::int64_t size() const { return end - begin; }
    };

    // How a node was split: what it takes to do so once more, and what scikit-learn finds then.
    struct Step {
        std::int64_t above, begin, end, first_column, last_column;
        Split split;
        std::int64_t middle = 0;
        double low = NAN, high = NAN;  // the impurity of both sides
        bool done = false;
    };

    // The negative gradient of the loss [records, outputs].
    void descend() {
        for (std::int64_t i = 0; i < n_; ++i) {
            const double *raw = raw_.data() + i * k_, y = target_[i];
            double* pull = pull_.data() + i * k_;
            if (rules_.loss == SQUARED_ERROR) pull[0] = y - raw[0];
            if (rules_.loss == BINOMIAL) {
                const double other = std::exp(-raw[0]);
                pull[0] = raw[0] > -37 ? (y * other - (1 - y)) / (1 + other) : y - std::exp(raw[0]);
            }
            if (rules_.loss == MULTINOMIAL) {
                const double highest = *std::max_element(raw, raw + k_);
                double sum = 0;
                for (std::int64_t c = 0; c < k_; ++c) sum += pull[c] = std::exp(raw[c] - highest);
                for (std::int64_t c = 0; c < k_; ++c) pull[c] = (y == static_cast<double>(c)) - pull[c] / sum;
            }
        }
    }

    void grow(std::int64_t output, Random random) {
        std::iota(at_.begin(), at_.end(), 0);
        for (std::int64_t i = 0; i < n_; ++i) pulls_[i] = pull_[i * k_ + output];
        std::iota(asked_.begin(), asked_.end(), 0);
        std::iota(columns_.begin(), columns_.end(), 0);
        waiting_.assign(1, {0, n_, 0, n_queries_, 0, 0, NAN});
        steps_.clear();
        looked_at_.clear();
        while (!waiting_.empty()) {
            Node node = waiting_.back();
            waiting_.pop_back();
            sum_up(node);
            Split split;
            if (node.depth < rules_.max_depth && node.size() >= rules_.min_samples_split && !pure(node))
                split = best(node, random);
            std::int64_t middle = node.begin;
            double low = NAN, high = NAN;
            bool splits = split.column >= 0;
            if (splits && keeps_order()) {
                middle = parted(at_, node.begin, node.end, split);
                std::tie(low, high) = impurities(at_, node, middle);
                splits = improves(node.impurity, node, middle, low, high);
            } else if (splits) {
                splits = settled(node, split);
                if (splits) middle = parted(at_, node.begin, node.end, split);
            }
            if (!splits) {
                settle(node, output);
                continue;
            }
            const Code* asked = table_.queries[split.column];
            const auto half = std::partition(asked_.begin() + node.first_query, asked_.begin() + node.last_query,
                                             [&](std::int32_t i) { return asked[i] <= split.code; }) - asked_.begin();
            const auto n_steps = static_cast<std::int64_t>(steps_.size());
            const double slack = 3 * rounding(node);
            waiting_.push_back({middle, node.end, half, node.last_query, node.depth + 1, node.n_constant, high, n_steps - 1, false,
                                slack / static_cast<double>(node.end - middle)});
            waiting_.push_back({node.begin, middle, node.first_query, half, node.depth + 1, node.n_constant, low, n_steps - 1,
                                true, slack / static_cast<double>(middle - node.begin)});
        }
    }

    // Whether records have to stay in scikit-learn's order.
    bool keeps_order() const { return rules_.loss == SQUARED_ERROR; }

    void sum_up(Node& node) {
        ++n_nodes_;
        for (std::int64_t i = 0; i < node.size(); ++i) {
            const std::int32_t row = at_[node.begin + i];
            const double pull = gradient_[i] = pulls_[row];
            node_[row] = n_nodes_;
            node.sum += pull;
            node.squares += pull * pull;
            node.size_of_sum += std::abs(pull);
            node.largest = std::max(node.largest, std::abs(pull));
        }
        if (node.above < 0) node.slack = rounding(node) / static_cast<double>(node.size());
        if (std::isnan(node.impurity)) node.impurity = impurity(node.squares, node.sum, node.size());
    }

    // How far scores of a node, and sums of squares less the square of a sum by their number, are apart by the order of
    // summation, at most. A sum of n numbers errs by at most n units of the sum of their magnitudes (Higham 2002, section 4.2),
    // here and there, where it may be what is left of another one; no mean is above the largest number.
    double rounding(const Node& node) const {
        const double units = static_cast<double>(node.size() + 8) * std::numeric_limits<double>::epsilon();
        const double sums = 4 * units * node.size_of_sum;
        return 4 * node.largest * sums + 2 * sums * sums + 8 * units * node.squares;
    }

    // Whether scikit-learn finds no impurity in a node.
    bool pure(const Node& node) {
        if (keeps_order() || node.impurity - node.slack > PURE) return node.impurity <= PURE;
        return impurity_there(node) <= PURE;
    }

    double impurity_there(const Node& node) {
        if (node.above < 0) return node.impurity;  // summed up as there
        again(node.above);
        return node.is_low ? steps_[node.above].low : steps_[node.above].high;
    }

    // Whether a node is split, after its best split is that of scikit-learn for certain.
    bool settled(const Node& node, Split& split) {
        const double n = static_cast<double>(node.size()), doubt = 2 * rounding(node);
        const bool open = split.score - split.next <= doubt;
        if (!open && split.score - node.sum * node.sum / n > 2 * doubt + n * node.slack) return true;
        const auto last = static_cast<std::int64_t>(steps_.size()) - 1;
        again(last);
        const Step& step = steps_[last];
        split = step.split;
        return split.column >= 0 && improves(impurity_there(node), node, step.middle, step.low, step.high);
    }

    // Splits a node once more as scikit-learn does, after those above it.
    void again(std::int64_t last) {
        path_.clear();
        for (std::int64_t i = last; i >= 0 && !steps_[i].done; i = steps_[i].above) path_.push_back(i);
        if (!path_.empty() && steps_[path_.back()].above < 0) std::iota(there_.begin(), there_.end(), 0);
        for (; !path_.empty(); path_.pop_back()) again(steps_[path_.back()]);
    }

    // Sorts the records of a node by each column that was looked at, and splits them.
    void again(Step& step) {
        step.done = true;
        Node node{step.begin, step.end, 0, 0, 0, 0, NAN};
        for (std::int64_t i = step.begin; i < step.end; ++i) {
            const double pull = pulls_[there_[i]];
            node.sum += pull;
            node.squares += pull * pull;
        }
        step.split = {};
        for (std::int64_t c = step.first_column; c < step.last_column; ++c) sorted(looked_at_[c], node, step.split);
        if (step.split.column < 0) return;
        step.middle = parted(there_, step.begin, step.end, step.split);
        std::tie(step.low, step.high) = impurities(there_, node, step.middle);
    }

    // A column, by which the records of a node are sorted.
    void sorted(std::int64_t j, const Node& node, Split& found) {
        const Code* codes = table_.records[j];
        const std::int64_t size = node.size();
        std::int32_t *const at = there_.data() + node.begin, *const keys = keys_.data();
        for (std::int64_t i = 0; i < size; ++i) keys[i] = static_cast<std::int32_t>(codes[at[i]]);
        Sorting::sort(keys, at, size);
        const float* values = table_.values + table_.first_code[j];
        if (!(values[keys[size - 1]] > values[keys[0]] + NEAR)) return;
        double left = 0;
        for (std::int64_t p = 1, n_summed = 0; p < size; ++p) {
            if (!(values[keys[p]] > values[keys[p - 1]] + NEAR) || std::min(p, size - p) < rules_.min_samples_leaf) continue;
            if (p - n_summed <= size - p) {
                for (std::int64_t i = n_summed; i < p; ++i) left += pulls_[at[i]];
            } else {
                left = node.sum;
                for (std::int64_t i = size - 1; i >= p; --i) left -= pulls_[at[i]];
            }
            n_summed = p;
            if (better(node, left, p, found)) found.column = j, found.code = code_between(values, keys[p - 1], keys[p]);
        }
    }

    // Parts the records of a node, in the order of scikit-learn, by which sums are rounded; where the higher ones begin.
    std::int64_t parted(std::vector<std::int32_t>& order, std::int64_t begin, std::int64_t end, const Split& split) const {
        const Code* codes = table_.records[split.column];
        while (begin < end) {
            if (codes[order[begin]] <= split.code)
                ++begin;
            else
                std::swap(order[begin], order[--end]);
        }
        return begin;
    }

    // Whether both sides of a node are no worse than itself, but for rounding.
    bool improves(double whole, const Node& node, std::int64_t middle, double low, double high) const {
        const double n_low = static_cast<double>(middle - node.begin), n_high = static_cast<double>(node.end - middle);
        const double n = n_low + n_high, share = n / static_cast<double>(n_);
        return !(share * (whole - n_high / n * high - n_low / n * low) + PURE < 0);
    }

    static double impurity(double squares, double sum, std::int64_t n) {
        const double mean = sum / static_cast<double>(n);
        return squares / static_cast<double>(n) - mean * mean;
    }

    // Of both sides of a node that was parted at a place, as scikit-learn rounds it: the smaller side is summed up.
    std::pair<double, double> impurities(const std::vector<std::int32_t>& order, const Node& node, std::int64_t middle) const {
        const std::int64_t begin = node.begin, end = node.end;
        const auto pull = [&](std::int64_t i) { return pulls_[order[i]]; };
        double squares = 0, left = 0, right = node.sum;
        for (std::int64_t i = begin; i < middle; ++i) squares += pull(i) * pull(i);
        if (middle - begin <= end - middle) {
            for (std::int64_t i = begin; i < middle; ++i) left += pull(i);
        } else {
            left = node.sum;
            for (std::int64_t i = end - 1; i >= middle; --i) left -= pull(i);
        }
        right -= left;
        return {impurity(squares, left, middle - begin), impurity(node.squares - squares, right, end - middle)};
    }

    // What a leaf adds to the records and queries in it.
    void settle(const Node& node, std::int64_t output) {
        const std::int64_t size = node.size();
        std::sort(at_.begin() + node.begin, at_.begin() + node.end);
        double value = 0;
        if (rules_.loss == SQUARED_ERROR) {
            value = node.sum / static_cast<double>(size);
        } else {
            for (std::int64_t i = 0; i < size; ++i) {
                const double y = target_[at_[node.begin + i]], pull = pulls_[at_[node.begin + i]];
                const double own = rules_.loss == MULTINOMIAL ? y == static_cast<double>(output) : y;
                gradient_[i] = pull;
                curvature_[i] = (own - pull) * (1 - (own - pull));
            }
            double numerator = summed(gradient_.data(), size) / static_cast<double>(size);
            if (rules_.loss == MULTINOMIAL) numerator *= (k_ - 1) / static_cast<double>(k_);
            const double denominator = summed(curvature_.data(), size) / static_cast<double>(size);
            value = std::abs(denominator) < FLAT ? 0.0 : numerator / denominator;
        }
        for (std::int64_t i = node.begin; i < node.end; ++i) raw_[at_[i] * k_ + output] += rate_ * value;
        for (std::int64_t i = node.first_query; i < node.last_query; ++i)
            answers_[asked_[i] * k_ + output] += rate_ * value;
    }

    // The best split of a node; none where it is pure or no column can be split. Columns are drawn without replacement:
    // those that are known to be constant stand first, those that are found to be are put behind them, and the others are
    // put at the end.
    Split best(Node& node, Random& random) {
        const std::int64_t d = table_.n_columns, n_known = node.n_constant;
        Split found;
        const auto first_column = static_cast<std::int64_t>(looked_at_.size());
        std::int64_t n_found = 0, n_drawn = 0, last = -1;
        for (std::int64_t left = d, visited = 0;
             left > n_known + n_found && (visited < rules_.max_features || visited <= n_found + n_drawn); ++visited) {
            std::int64_t place = random.between(n_drawn, left - n_found);
            if (place < n_known) {
                std::swap(columns_[n_drawn++], columns_[place]);
                continue;
            }
            place += n_found;
            last = columns_[place];
            if (!keeps_order()) looked_at_.push_back(static_cast<std::int32_t>(last));
            const bool varies = table_.n_codes[last] == 2 ? binary(last, node, found) : column(last, node, found);
            if (varies)
                std::swap(columns_[--left], columns_[place]);
            else
                std::swap(columns_[n_known + n_found++], columns_[place]);
        }
        std::copy_n(constant_.begin(), n_known, columns_.begin());
        std::copy_n(columns_.begin() + n_known, n_found, constant_.begin() + n_known);
        node.n_constant = n_known + n_found;
        if (!keeps_order())
            steps_.push_back({node.above, node.begin, node.end, first_column, static_cast<std::int64_t>(looked_at_.size()), found});
        else if (last >= 0 && found.column >= 0) {  // as it was sorted last, the order in which both sides are summed up
            const Code* codes = table_.records[last];
            std::stable_sort(at_.begin() + node.begin, at_.begin() + node.end,
                             [&](std::int32_t a, std::int32_t b) { return codes[a] < codes[b]; });
        }
        return found;
    }

    // Whether a split is the best so far, by the sum and number of the records on its left.
    bool better(const Node& node, double left, std::int64_t n_left, Split& best) const {
        const std::int64_t n_right = node.size() - n_left;
        if (n_left < rules_.min_samples_leaf || n_right < rules_.min_samples_leaf) return false;
        const double right = node.sum - left;
        const double found = left * left / static_cast<double>(n_left) + right * right / static_cast<double>(n_right);
        if (!(found > best.score)) {
            best.next = std::max(best.next, found);
            return false;
        }
        best.next = std::exchange(best.score, found);
        return true;
    }

    // A column with two values; whether both are there. Its higher ones are looked for in the node, or the node among them.
    bool binary(std::int64_t j, const Node& node, Split& found) {
        const float* values = table_.values + table_.first_code[j];
        if (!(values[1] > values[0] + NEAR)) return false;
        const Code* codes = table_.records[j];
        const std::vector<std::int32_t>& higher = table_.higher[j];
        const std::int64_t size = node.size();
        double sum = 0;
        std::int64_t n_high = 0;
        if (static_cast<std::int64_t>(higher.size()) < size) {
            for (const std::int32_t row : higher) {
                const bool inside = node_[row] == n_nodes_;
                sum += inside ? pulls_[row] : 0.0;
                n_high += inside;
            }
        } else {
            for (std::int64_t i = 0; i < size; ++i) {
                const Code high = codes[at_[node.begin + i]];
                sum += high ? gradient_[i] : 0.0;
                n_high += high;
            }
        }
        if (n_high == 0 || n_high == size) return false;
        if (better(node, node.sum - sum, size - n_high, found)) found.column = j, found.code = 0;
        return true;
    }

    // A column with any number of values; whether its lowest and its highest one are told apart.
    bool column(std::int64_t j, const Node& node, Split& found) {
        const Code* codes = table_.records[j];
        const std::int64_t size = node.size(), n_codes = table_.n_codes[j];
        const std::int32_t* at = at_.data() + node.begin;
        for (std::int64_t i = 0; i < size; ++i) {
            const std::int64_t code = codes[at[i]];
            totals_[code].sum += gradient_[i];
            ++totals_[code].n;
            filled_[code >> 6] |= std::uint64_t{1} << (code & 63);
        }
        present_.clear();
        for (std::int64_t word = 0; 64 * word < n_codes; ++word)
            for (std::uint64_t bits = std::exchange(filled_[word], 0); bits; bits &= bits - 1)
                present_.push_back(static_cast<std::int32_t>(64 * word + __builtin_ctzll(bits)));
        const float* values = table_.values + table_.first_code[j];
        double left = 0;
        std::int64_t n_left = 0, n_summed = 0;
        for (std::size_t p = 0; p < present_.size(); ++p) {
            const std::int32_t low = present_[p];
            const Total own = std::exchange(totals_[low], Total{});
            left += own.sum;
            n_left += own.n;
            if (p + 1 == present_.size() || !(values[present_[p + 1]] > values[low] + NEAR)) continue;
            if (std::min(n_left, size - n_left) < rules_.min_samples_leaf) continue;
            if (n_left - n_summed > size - n_left) {  // scikit-learn sums up what is less, here the right side
                left = node.sum;
                for (std::size_t q = present_.size() - 1; q > p; --q) left -= totals_[present_[q]].sum;
            }
            n_summed = n_left;
            if (better(node, left, n_left, found)) {
                found.column = j;
                found.code = code_between(values, low, present_[p + 1]);
            }
        }
        return values[present_.back()] > values[present_.front()] + NEAR;
    }

    const Table<Code>& table_;
    const Rules& rules_;
    const double rate_;
    const std::int64_t n_, k_;
    const double* target_;  // [records]: numbers, 0 and 1, or places of classes
    const std::uint32_t* seeds_;  // [stages, outputs]
    const std::int64_t n_queries_;
    double* answers_;                          // [queries, outputs]
    std::vector<double> raw_, pull_;           // [records, outputs]
    std::vector<double> pulls_;                // of the output at hand
    std::vector<std::int32_t> at_;             // records, those of a node side by side
    std::vector<std::int64_t> node_;           // which of all nodes each record is in
    std::int64_t n_nodes_ = 0;
    std::vector<double> gradient_, curvature_; // of the records of the node at hand
    std::vector<std::int32_t> asked_;          // queries likewise
    std::vector<std::int64_t> columns_, constant_;
    std::vector<Node> waiting_;
    std::vector<Total> totals_;                // [codes], 0 between columns
    std::vector<std::uint64_t> filled_;        // which codes are there, 0 between columns
    std::vector<std::int32_t> present_;        // these
    std::vector<Step> steps_;                  // of the tree at hand
    std::vector<std::int64_t> path_;           // of steps
    std::vector<std::int32_t> looked_at_;      // the columns of all steps, in order
    std::vector<std::int32_t> there_, keys_;   // records in the order that they have in scikit-learn, and a column of them
};

template <typename Code>
void boost(std::int64_t n_pool, std::int64_t n_columns, const Code* codes, const std::int32_t* n_codes,
           const float* values, const Rules& rules, double rate, std::int64_t n, const std::int32_t* rows,
           const double* target, const double* initial, const std::uint32_t* seeds, std::int64_t n_queries, const Code* asked,
           double* answers) {
    std::vector<Code> own(n * n_columns);
    Table<Code> table{n_columns, n_codes, values, {}, {}, {}, {}};
    std::int64_t first = 0;
    for (std::int64_t j = 0; j < n_columns; ++j) {
        Code* column = own.data() + j * n;
        for (std::int64_t i = 0; i < n; ++i) column[i] = codes[j * n_pool + rows[i]];
        table.records.push_back(column);
        table.queries.push_back(asked + j * n_queries);
        table.first_code.push_back(first);
        first += n_codes[j];
        table.higher.emplace_back();
        if (n_codes[j] == 2)
            for (std::int64_t i = 0; i < n; ++i)
                if (column[i]) table.higher.back().push_back(static_cast<std::int32_t>(i));
    }
    Boosting<Code>(table, rules, rate, n, target, initial, seeds, n_queries, answers).train();
}

}  // namespace

// Boosts trees on some rows of a pool, whose codes of so many bytes, 1, 2 or 4, stand column by column [columns, pool], and
// answers queries [columns, queries] by their raw predictions [queries, outputs], which begin at `initial` [outputs]. What
// each code stands for is in `values`, ascending, column after column; each tree has a seed [stages, outputs]. Returns 0, or -1
// without memory.
extern "C" std::int64_t leakgauge_boosted(std::int64_t n_pool, std::int64_t n_columns, std::int64_t n_bytes,
                                           const void* codes, const std::int32_t* n_codes, const float* values,
                                           const Rules* rules, double rate, std::int64_t n, const std::int32_t* rows,
                                           const double* target, const double* initial, const std::uint32_t* seeds,
                                           std::int64_t n_queries, const void* asked, double* answers) {
    const auto with = [&](auto code) {
        using Code = decltype(code);
        boost(n_pool, n_columns, static_cast<const Code*>(codes), n_codes, values, *rules, rate, n, rows, target,
              initial, seeds, n_queries, static_cast<const Code*>(asked), answers);
    };
    try {
        if (n_bytes == 1) with(std::uint8_t{});
        if (n_bytes == 2) with(std::uint16_t{});
        if (n_bytes == 4) with(std::int32_t{});
        return 0;
    } catch (...) {
        return -1;
    }
}
