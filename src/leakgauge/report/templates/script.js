"use strict";
(() => {
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
      [...rates, fpr].forEach((rate, i) => { cells[i].textContent = rate.toFixed(3); });
      const at = `False-positive rate ${fpr.toFixed(3)}`;
      input.setAttribute("aria-valuetext", at);
      figure.querySelector(".at").textContent = `TPR at ${fpr.toFixed(3)}`;
      figure.querySelector(".said").textContent =
        `${at}: true-positive rate ${rates.map((rate, i) => `${letters[i]} ${rate.toFixed(3)}`).join(", ")}.`;
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
