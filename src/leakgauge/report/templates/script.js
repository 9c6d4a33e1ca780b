"use strict";
(() => {
  const percent = (rate) => `${(100 * rate).toFixed(rate < 0.01 ? 2 : 1)} %`;
  const data = JSON.parse(document.getElementById("data").textContent);

  for (const figure of document.querySelectorAll("figure.roc")) {
    const audit = data.audits[Number(figure.dataset.index)];
    const curves = Object.values(audit.tpr);
    const plot = figure.querySelector("svg.plot");
    const [low, left, right, top, bottom] = ["roc", "left", "right", "top", "bottom"].map((k) => Number(plot.dataset[k]));
    const share = (rate) => Math.log(Math.max(rate, low) / low) / Math.log(1 / low);
    const x = (rate) => left + share(rate) * (right - left);
    const y = (rate) => bottom - share(rate) * (bottom - top);
    const input = figure.querySelector("input");
    const cursor = figure.querySelector(".cursor");
    const cells = figure.querySelectorAll(".read");
    const letters = [...figure.querySelectorAll(".legend .letter text")].map((text) => text.textContent);

    const show = () => {
      const fpr = audit.fpr[Number(input.value)];
      const rates = curves.map((curve) => curve[Number(input.value)]);
      cursor.setAttribute("visibility", "visible");
      cursor.querySelector("path").setAttribute("transform", `translate(${x(fpr)} 0)`);
      cursor.querySelectorAll("circle").forEach((dot, i) => {
        dot.setAttribute("cx", x(fpr));
        dot.setAttribute("cy", y(rates[i]));
        dot.setAttribute("r", rates[i] < low ? 0 : 4.5);
      });
      [...rates, fpr].forEach((rate, i) => { cells[i].textContent = percent(rate); });
      const at = `False-positive rate ${percent(fpr)}`;
      input.setAttribute("aria-valuetext", at);
      figure.querySelector(".at").textContent = `TPR at ${percent(fpr)}`;
      figure.querySelector(".said").textContent =
        `${at}: true-positive rate ${rates.map((rate, i) => `${letters[i]} ${percent(rate)}`).join(", ")}.`;
    };

    const follow = (event) => {
      const box = plot.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * plot.viewBox.baseVal.width;
      input.value = Math.round(((at - left) / (right - left)) * input.max);
      show();
    };

    figure.querySelector(".walk").hidden = false;
    input.value = Math.round(share(Number(figure.dataset.start)) * input.max);
    input.addEventListener("input", show);
    input.addEventListener("focus", show);
    plot.addEventListener("pointermove", follow);
    plot.addEventListener("pointerdown", (event) => { follow(event); input.focus({ preventScroll: true }); });
  }

  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const copied = document.getElementById(button.dataset.copy);
      try {
        await navigator.clipboard.writeText(copied.innerText.trim());
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(copied);
        button.textContent = "Selected";
      }
    });
  }

  const TITLES = {
    record: "Record", member: "In training", pdtp: "PDTP", change: "Change in usual errors",
    noise_floor: "Noise floor", success: "Attack’s success", score: "Score", exposed: "Identified",
  };
  const PER_PAGE = 50;
  for (const explorer of document.querySelectorAll(".explorer")) {
    const { records } = data.audits[Number(explorer.dataset.index)];
    if (!records) continue;
    const ids = records.record.split(" ");
    const numbers = ["pdtp", "change", "noise_floor", "success", "score"].filter((name) => records[name]);
    const columns = ["record", "member", ...numbers, "exposed"];
    const [search, show, sort] = explorer.querySelectorAll("input, select");
    const [previous, next] = explorer.querySelectorAll(".pages button");
    const said = explorer.querySelector(".pages span");
    const value = (name, i) => ({ inf: Infinity, "-inf": -Infinity })[records[name][i]] ?? records[name][i] ?? -Infinity;
    const kinds = {
      all: () => true,
      member: (i) => records.member[i] === "1",
      holdout: (i) => records.member[i] === "0",
      exposed: (i) => records.exposed[i] === "1",
      above: (i) => records.above[i] === "1",
    };
    const cell = (name, i) => {
      if (name === "record") return ids[i];
      if (name === "member") return records.member[i] === "1" ? "yes" : "no";
      if (name === "exposed") return { 1: "yes", 0: "not shown" }[records.exposed[i]] ?? "–";
      const held = records[name][i];
      if (held === null) return "–";
      return typeof held === "number" ? held.toFixed(2).replace("-", "−") : held === "inf" ? "∞" : "−∞";
    };
    const row = (kind, texts) => {
      const line = document.createElement("tr");
      texts.forEach((text, k) => {
        const made = document.createElement(kind === "th" || k === 0 ? "th" : "td");
        if (kind === "th") made.scope = "col"; else if (k === 0) made.scope = "row";
        made.textContent = text;
        line.append(made);
      });
      return line;
    };
    sort.append(...["as listed", ...numbers].map((name) => new Option(TITLES[name] ?? name, name)));
    if (!records.above) show.querySelector("[value=above]").remove();
    explorer.querySelector("thead").append(row("th", columns.map((name) => TITLES[name])));
    let at = 0;
    const draw = () => {
      const wanted = search.value.trim().toLowerCase();
      let found = ids.map((_, i) => i).filter((i) => kinds[show.value](i) && ids[i].includes(wanted));
      if (numbers.includes(sort.value)) found.sort((a, b) => value(sort.value, b) - value(sort.value, a) || a - b);
      at = Math.max(0, Math.min(at, Math.floor((found.length - 1) / PER_PAGE)));
      const from = at * PER_PAGE, to = Math.min(found.length, from + PER_PAGE);
      explorer.querySelector("tbody").replaceChildren(
        ...found.slice(from, to).map((i) => row("td", columns.map((name) => cell(name, i)))));
      const count = (n) => n.toLocaleString("en");
      said.textContent = found.length ? `${count(from + 1)} to ${count(to)} of ${count(found.length)} records` : "no record";
      previous.disabled = at === 0;
      next.disabled = to === found.length;
    };
    for (const control of [search, show, sort]) control.addEventListener("input", () => { at = 0; draw(); });
    previous.addEventListener("click", () => { at -= 1; draw(); });
    next.addEventListener("click", () => { at += 1; draw(); });
    explorer.hidden = false;
    draw();
  }

  // Paper cannot be unfolded.
  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open])")];
    unfolded.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => {
    unfolded.forEach((details) => { details.open = false; });
  });
})();
