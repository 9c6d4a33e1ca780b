// Training of one small network, compiled once for each instruction set: networks.cpp includes this file in a namespace
// of its own each time, after it has said there what a vector V of W floats is, a vector I of as many integers, what
// madd (a b + c), root and larger (its second argument if one is NaN) do with them, and how many ROWS of a product fit
// into the registers.
//
// Matrices are row-major, and rows are padded with zeros to whole groups of 16 columns. The first layer is stored
// [inputs, outputs], so that a sparse record is a sum of its rows; later ones [outputs, inputs], so that a narrow
// output is not padded. Every sum runs over its terms in one order, whatever W is: instruction sets with a fused
// multiply-add agree to the last bit but in the sum of the squared weights, which only the stopping rule reads. Zeros
// add nothing: sparse and dense agree as well.

constexpr int PER = GROUP / W;  // vectors of a group

INLINE V load(const float* from) { return *reinterpret_cast<const V*>(from); }
INLINE void store(float* to, V value) { *reinterpret_cast<V*>(to) = value; }
INLINE V all(float value) { return value - V{}; }

// e^y = scale + scale * rest and e^y - 1 = (scale - 1) + scale * rest, for -87 <= y <= 88; NaN stays NaN.
struct Power {
    V scale, rest;
};

INLINE Power power(V y) {
    const V shifted = madd(y, all(1.44269504f), all(12583039.0f));  // 127 + the integer k nearest to y / ln 2
    const V k = shifted - 12583039.0f;                              // are the low bits of a number so large
    const V r = madd(k, all(2.12194440e-4f), madd(k, all(-0.693359375f), y));  // ln 2 in two parts
    V q = madd(r, all(1.98458802e-4f), all(1.39406545e-3f));  // (e^r - 1 - r) / r^2, minimax on |r| < 0.347: 2e-10
    q = madd(q, r, all(8.33338943e-3f));
    q = madd(q, r, all(4.16663606e-2f));
    q = madd(q, r, all(1.66666664e-1f));
    q = madd(q, r, all(0.5f));
    return {(V)((I)shifted << 23), madd(q * r, r, r)};
}

INLINE V magnitude(V x) { return (V)((I)x & 0x7fffffff); }
INLINE V at_least(V x, float least) { return larger(all(least), x); }

INLINE V tanh_of(V x) {
    const Power e = power(at_least(-2.0f * magnitude(x), -40.0f));
    const V t = madd(e.scale, e.rest, e.scale - 1.0f);  // e^(-2|x|) - 1
    return (V)((I)(-t / (2.0f + t)) | ((I)x & INT32_MIN));
}

INLINE V exp_of(V x) {
    const Power e = power(at_least(x, -87.0f));
    return madd(e.scale, e.rest, e.scale);
}

INLINE V logistic_of(V x) {
    const V e = exp_of(-magnitude(x));
    return (x < V{} ? e : all(1.0f)) / (1.0f + e);
}

// What becomes of a few vectors of a product: they are row m, columns n, n + W, ... of it.

struct Activate {
    Activation kind;
    float* to;
    int64_t ld;

    template <int N>
    INLINE void operator()(int64_t m, int64_t n, V (&z)[N]) {
        float* at = to + m * ld + n;
        switch (kind) {
            case IDENTITY:
                for (int c = 0; c < N; ++c) store(at + c * W, z[c]);
                break;
            case LOGISTIC:
                for (int c = 0; c < N; ++c) store(at + c * W, logistic_of(z[c]));
                break;
            case TANH:
                for (int c = 0; c < N; ++c) store(at + c * W, tanh_of(z[c]));
                break;
            case RELU:
                for (int c = 0; c < N; ++c) store(at + c * W, at_least(z[c], 0.0f));
                break;
        }
    }
};

struct Differentiate {
    Activation kind;
    const float* activations;
    float* to;
    int64_t ld;

    template <int N>
    INLINE void operator()(int64_t m, int64_t n, V (&z)[N]) {
        const float* before = activations + m * ld + n;
        float* at = to + m * ld + n;
        for (int c = 0; c < N; ++c) {
            const V a = load(before + c * W);
            V d = z[c];
            switch (kind) {
                case IDENTITY:
                    break;
                case LOGISTIC:
                    d = d * a * (1.0f - a);
                    break;
                case TANH:
                    d = d * (1.0f - a * a);
                    break;
                case RELU:
                    d = a == V{} ? V{} : d;
                    break;
            }
            store(at + c * W, d);
        }
    }
};

// Moves parameters by a gradient that is never stored: the product is its sum over the records of the batch.
struct Update {
    Rule rule;
    float alpha;  // 0 for biases
    float *values, *first, *second;
    int64_t ld;
    V squares = {};  // of the values before

    template <int N>
    INLINE void operator()(int64_t m, int64_t n, V (&sums)[N]) {
        const int64_t at = m * ld + n;
        if (rule.adam) {
            for (int c = 0; c < N; ++c) adam(at + c * W, sums[c]);
        } else {
            for (int c = 0; c < N; ++c) sgd(at + c * W, sums[c]);
        }
    }

    INLINE V gradient(V value, V sum) {
        squares = madd(value, value, squares);
        return madd(all(alpha), value, sum) * rule.per_record;
    }

    INLINE void adam(int64_t at, V sum) {
        const V value = load(values + at);
        const V g = gradient(value, sum);
        const V mean = madd(all(rule.beta_1), load(first + at), rule.rest_1 * g);
        const V square = madd(all(rule.beta_2), load(second + at), rule.rest_2 * (g * g));
        store(first + at, mean);
        store(second + at, square);
        store(values + at, value - rule.rate * mean / (root(square) + rule.epsilon));
    }

    INLINE void sgd(int64_t at, V sum) {
        const V value = load(values + at);
        const V step = rule.rate * gradient(value, sum);
        const V velocity = rule.momentum * load(first + at) - step;
        store(first + at, velocity);
        store(values + at, value + (rule.nesterov ? rule.momentum * velocity - step : velocity));
    }
};

// start + A B for R rows of A and one group of columns of B; A[m, k] is a[m * row + k * step].
template <int R, class Then>
INLINE void tile(int64_t m, int64_t n, int64_t depth, const float* a, int64_t row, int64_t step, const float* b,
                 int64_t ld, const float* start, Then& then) {
    V sums[R][PER];
    for (int r = 0; r < R; ++r)
        for (int c = 0; c < PER; ++c) sums[r][c] = load(start + n + c * W);
    for (int64_t k = 0; k < depth; ++k) {
        V terms[PER];
        for (int c = 0; c < PER; ++c) terms[c] = load(b + k * ld + n + c * W);
        for (int r = 0; r < R; ++r) {
            const V factor = all(a[(m + r) * row + k * step]);
            for (int c = 0; c < PER; ++c) sums[r][c] = madd(factor, terms[c], sums[r][c]);
        }
    }
    for (int r = 0; r < R; ++r) then(m + r, n, sums[r]);
}

template <int R, class Then>
INLINE void last_rows(int64_t left, int64_t m, int64_t n, int64_t depth, const float* a, int64_t row, int64_t step,
                      const float* b, int64_t ld, const float* start, Then& then) {
    if constexpr (R > 0) {
        if (left == R) return tile<R>(m, n, depth, a, row, step, b, ld, start, then);
        last_rows<R - 1>(left, m, n, depth, a, row, step, b, ld, start, then);
    }
}

// then(start + A B), for A [rows, depth] and B [depth, columns]; returns what has become of then.
template <class Then>
Then product(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t row, int64_t step, const float* b,
             int64_t ld, const float* start, Then then) {
    for (int64_t n = 0; n < columns; n += GROUP) {
        int64_t m = 0;
        for (; m + ROWS <= rows; m += ROWS) tile<ROWS>(m, n, depth, a, row, step, b, ld, start, then);
        last_rows<ROWS - 1>(rows - m, m, n, depth, a, row, step, b, ld, start, then);
    }
    return then;
}

// The non-zeros of a record.
struct AlongRow {
    int64_t at, end;
    const int32_t* columns;
    const float* values;

    INLINE bool more() const { return at < end; }
    INLINE int64_t index() const { return columns[at]; }
    INLINE float value() const { return values[at]; }
    INLINE void next() { ++at; }
};

// The non-zeros of a column in 64 places of the batch: a bit for each place that has one.
struct AlongColumn {
    uint64_t bits;
    int64_t first;
    const float* values;

    INLINE bool more() const { return bits != 0; }
    INLINE int64_t index() const { return first + __builtin_ctzll(bits); }
    INLINE float value() const { return values[index()]; }
    INLINE void next() { bits &= bits - 1; }
};

// Adds to sums the rows of B that the non-zeros say. ONES: all of these are 1, and values are null.
template <bool ONES, int N, class Along>
INLINE void add_rows(Along along, const float* b, int64_t ld, V (&sums)[N]) {
    for (; along.more(); along.next()) {
        const float* terms = b + along.index() * ld;
        const V factor = ONES ? V{} : all(along.value());
        for (int c = 0; c < N; ++c) {
            const V term = load(terms + c * W);
            sums[c] = ONES ? sums[c] + term : madd(factor, term, sums[c]);
        }
    }
}

// Goes through columns in blocks of up to 64: as many sums fit into the registers.
template <class Block>
INLINE void by_blocks(int64_t columns, Block& block) {
    int64_t n = 0;
    for (; n + 4 * GROUP <= columns; n += 4 * GROUP) block.template at<4>(n);
    switch ((columns - n) / GROUP) {
        case 3:
            return block.template at<3>(n);
        case 2:
            return block.template at<2>(n);
        case 1:
            return block.template at<1>(n);
    }
}

// then(biases + X W) for the sparse records of a batch.
template <bool ONES>
struct Forwards {
    const Layer& layer;
    const Matrix& x;
    const Work& work;
    int64_t n_records;
    const float *weights, *biases;
    Activate then;

    template <int G>
    INLINE void at(int64_t n) {
        for (int64_t r = 0; r < n_records; ++r) {
            V sums[G * PER];
            for (int c = 0; c < G * PER; ++c) sums[c] = load(biases + n + c * W);
            const AlongRow along = {x.starts[work.rows[r]], x.starts[work.rows[r] + 1], x.columns, x.values};
            add_rows<ONES>(along, weights + n, layer.columns, sums);
            then(r, n, sums);
        }
    }
};

// then(X^T deltas), from the bits of the columns of a batch.
template <bool ONES>
struct Gradients {
    const Layer& layer;
    const Work& work;
    const float* deltas;
    Update then;

    template <int G>
    INLINE void at(int64_t n) {
        for (int64_t i = 0; i < layer.in; ++i) {
            V sums[G * PER] = {};
            for (int64_t word = 0; word < work.n_words; ++word) {
                const uint64_t bits = work.bits[i * work.n_words + word];
                const AlongColumn along = {bits, 64 * word, ONES ? nullptr : work.by_column + i * work.batch_size};
                add_rows<ONES>(along, deltas + n, layer.columns, sums);
            }
            then(i, n, sums);
        }
    }
};

// The sum of a group.
INLINE float total(const float* x) {
    float s[8];
    for (int j = 0; j < 8; ++j) s[j] = x[j] + x[j + 8];
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

// The largest of a few groups.
INLINE float most(const float* a, int64_t columns) {
    V highest = load(a);
    for (int64_t n = W; n < columns; n += W) highest = larger(highest, load(a + n));
    alignas(64) float parts[W];
    store(parts, highest);
    for (int half = W / 2; half > 0; half /= 2)
        for (int j = 0; j < half; ++j) parts[j] = parts[j + half] > parts[j] ? parts[j + half] : parts[j];
    return parts[0];
}

// The scalar product of a few groups.
INLINE float dot(const float* a, const float* b, int64_t columns) {
    V sums[PER] = {};
    for (int64_t n = 0; n < columns; n += GROUP)
        for (int c = 0; c < PER; ++c) sums[c] = madd(load(a + n + c * W), load(b + n + c * W), sums[c]);
    alignas(64) float parts[GROUP];
    for (int c = 0; c < PER; ++c) store(parts + c * W, sums[c]);
    return total(parts);
}

// One model and one batch of it: forwards, backwards, and every parameter moved once.
struct Trainer {
    const Shape& shape;
    const Matrix& x;
    float* state;
    const Work& work;
    Rule rule;

    float* weights(int l) { return state + shape.layers[l].weights; }
    float* biases(int l) { return state + shape.layers[l].biases; }

    // The mean loss of the n records in work.rows, before the step.
    double step(int64_t n) {
        const int last = shape.n_layers - 1;
        rule.per_record = 1.0f / static_cast<float>(n);
        first_layer(n);
        for (int l = 1; l <= last; ++l) later_layer(l, n);
        const double loss = shape.layers[last].out == 1 ? one_output(n) : softmax(n);
        double squares = 0.0;
        for (int l = last; l > 0; --l) {
            backwards(l, n);
            squares += update_later(l, n);
            update_biases(l, n);
        }
        squares += update_first(n);
        update_biases(0, n);
        return (loss + 0.5 * rule.alpha * squares) / static_cast<double>(n);
    }

    Activate activate(int l) {
        const bool output = l == shape.n_layers - 1;
        return {output ? IDENTITY : shape.activation, work.activations[l], shape.layers[l].out_columns};
    }

    void first_layer(int64_t n) {
        const Layer& layer = shape.layers[0];
        if (!x.columns) {
            for (int64_t r = 0; r < n; ++r)
                memcpy(work.x + r * layer.in, x.values + work.rows[r] * layer.in, layer.in * sizeof(float));
            product(n, layer.columns, layer.in, work.x, layer.in, 1, weights(0), layer.columns, biases(0), activate(0));
        } else if (x.values) {
            sparse_forwards<false>(n);
        } else {
            sparse_forwards<true>(n);
        }
        clear_padding(0, n);
    }

    template <bool ONES>
    void sparse_forwards(int64_t n) {
        Forwards<ONES> forwards = {shape.layers[0], x, work, n, weights(0), biases(0), activate(0)};
        by_blocks(shape.layers[0].columns, forwards);
    }

    void later_layer(int l, int64_t n) {
        const Layer& layer = shape.layers[l];
        const float* before = work.activations[l - 1];
        if (layer.out <= NARROW && l == shape.n_layers - 1) {
            for (int64_t r = 0; r < n; ++r)
                for (int64_t j = 0; j < layer.out; ++j)
                    work.activations[l][r * layer.out_columns + j] =
                        biases(l)[j] + dot(before + r * layer.columns, weights(l) + j * layer.columns, layer.columns);
            return;
        }
        for (int64_t j = 0; j < layer.out; ++j)
            for (int64_t i = 0; i < layer.in; ++i)
                work.transposed[l][i * layer.out_columns + j] = weights(l)[j * layer.columns + i];
        product(n, layer.out_columns, layer.in, before, layer.columns, 1, work.transposed[l], layer.out_columns,
                biases(l), activate(l));
        clear_padding(l, n);
    }

    // A logistic unit without inputs answers a half.
    void clear_padding(int l, int64_t n) {
        const Layer& layer = shape.layers[l];
        if (shape.activation == LOGISTIC)
            for (int64_t r = 0; r < n; ++r)
                for (int64_t j = layer.out; j < layer.out_columns; ++j)
                    work.activations[l][r * layer.out_columns + j] = 0.0f;
    }

    // The summed loss; leaves its derivatives by the outputs in work.deltas.
    double one_output(int64_t n) {
        const int last = shape.n_layers - 1;
        const float* z = work.activations[last];
        float* deltas = work.deltas[last];
        Losses losses;
        for (int64_t r = 0; r < n; r += W) {
            const int64_t here = n - r < W ? n - r : W;
            alignas(64) float p[W] = {}, e[W];
            for (int64_t j = 0; j < here; ++j) p[j] = z[(r + j) * GROUP];
            store(e, exp_of(-magnitude(load(p))));
            store(p, logistic_of(load(p)));
            for (int64_t j = 0; j < here; ++j) {
                const bool positive = x.y[work.rows[r + j]] == 1;
                const float against = positive ? -z[(r + j) * GROUP] : z[(r + j) * GROUP];
                losses.add(against < 0.0f ? 0.0f : against, 1.0 + static_cast<double>(e[j]));
                deltas[(r + j) * GROUP] = positive ? p[j] - 1.0f : p[j];
            }
        }
        return losses.sum();
    }

    double softmax(int64_t n) {
        const int last = shape.n_layers - 1;
        const Layer& layer = shape.layers[last];
        Losses losses;
        for (int64_t r = 0; r < n; ++r) {
            float* z = work.activations[last] + r * layer.out_columns;
            for (int64_t j = layer.out; j < layer.out_columns; ++j) z[j] = z[0];  // no say in which is highest
            float* p = work.deltas[last] + r * layer.out_columns;
            const float highest = most(z, layer.out_columns);
            for (int64_t j = 0; j < layer.out_columns; j += W) store(p + j, exp_of(load(z + j) - highest));
            for (int64_t j = layer.out; j < layer.out_columns; ++j) p[j] = 0.0f;
            const float sum = dot(p, work.ones, layer.out_columns);
            for (int64_t j = 0; j < layer.out_columns; j += W) store(p + j, load(p + j) / sum);
            const int32_t own = x.y[work.rows[r]];
            losses.add(highest - z[own], sum);
            p[own] -= 1.0f;
        }
        return losses.sum();
    }

    void backwards(int l, int64_t n) {
        const Layer& layer = shape.layers[l];
        const Differentiate then = {shape.activation, work.activations[l - 1], work.deltas[l - 1], layer.columns};
        product(n, layer.columns, layer.out, work.deltas[l], layer.out_columns, 1, weights(l), layer.columns,
                work.zeros, then);
    }

    Update update(int64_t at, int64_t ld, float alpha) {
        return {rule, alpha, state + at, state + shape.size + at, state + 2 * shape.size + at, ld};
    }

    static double sum_of(const Update& done) {
        double sum = 0.0;
        for (int j = 0; j < W; ++j) sum += done.squares[j];
        return sum;
    }

    double update_later(int l, int64_t n) {
        const Layer& layer = shape.layers[l];
        return sum_of(product(layer.out, layer.columns, n, work.deltas[l], 1, layer.out_columns,
                              work.activations[l - 1], layer.columns, work.zeros,
                              update(layer.weights, layer.columns, rule.alpha)));
    }

    double update_first(int64_t n) {
        const Layer& layer = shape.layers[0];
        const Update then = update(layer.weights, layer.columns, rule.alpha);
        if (x.columns) return x.values ? sparse_update<false>(n, then) : sparse_update<true>(n, then);
        return sum_of(product(layer.in, layer.columns, n, work.x, 1, layer.in, work.deltas[0], layer.columns,
                              work.zeros, then));
    }

    template <bool ONES>
    double sparse_update(int64_t n, const Update& then) {
        turn<ONES>(n);
        Gradients<ONES> gradients = {shape.layers[0], work, work.deltas[0], then};
        by_blocks(shape.layers[0].columns, gradients);
        return sum_of(gradients.then);
    }

    // The non-zeros of the batch by column: a bit for each record, and unless all are ones, the value.
    template <bool ONES>
    void turn(int64_t n) {
        memset(work.bits, 0, shape.layers[0].in * work.n_words * sizeof(uint64_t));
        for (int64_t r = 0; r < n; ++r) {
            const uint64_t bit = uint64_t{1} << (r % 64);
            for (int64_t e = x.starts[work.rows[r]]; e < x.starts[work.rows[r] + 1]; ++e) {
                const int64_t column = x.columns[e];
                work.bits[column * work.n_words + r / 64] |= bit;
                if (!ONES) work.by_column[column * work.batch_size + r] = x.values[e];
            }
        }
    }

    void update_biases(int l, int64_t n) {
        const Layer& layer = shape.layers[l];
        product(1, layer.out_columns, n, work.ones, 0, 0, work.deltas[l], layer.out_columns, work.zeros,
                update(layer.biases, layer.out_columns, 0.0f));
    }
};

double train_batch(const Shape& shape, const Matrix& x, float* state, const Work& work, const Rule& rule, int64_t n) {
    return Trainer{shape, x, state, work, rule}.step(n);
}
