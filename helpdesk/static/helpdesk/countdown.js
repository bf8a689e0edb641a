// Counts the server's seconds down. The browser's own clock and zone do not matter.
for (const element of document.querySelectorAll("[data-countdown]")) {
  const end = performance.now() + Number(element.dataset.countdown) * 1000;
  const units = element.dataset.units.split(" ");
  const sizes = [86400, 3600, 60, 1];
  const tick = () => {
    let rest = Math.max(0, Math.round((end - performance.now()) / 1000));
    if (rest === 0) {
      element.textContent = element.dataset.over;
      return;
    }
    const counts = sizes.map((size) => {
      const count = Math.floor(rest / size);
      rest -= count * size;
      return count;
    });
    const first = counts.findIndex((count) => count > 0);
    const words = counts
      .map((count, index) => [count, index])
      .slice(first, first + 2)
      .filter(([count]) => count > 0)
      .map(([count, index]) => `${count} ${units[index]}`);
    element.textContent = element.dataset.text.replace("%s", words.join(" "));
    setTimeout(tick, 500);
  };
  tick();
}
