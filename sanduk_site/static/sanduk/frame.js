// Keys move the focus and press nothing; the count of what waits keeps up with the server.
"use strict";
(() => {
  const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]");
  const isShown = (element) => element.getClientRects().length > 0;
  const shown = (selector) => [...document.querySelectorAll(selector)].filter(isShown);

  const focus = (element) => {
    if (!element) return;
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest" });
  };

  const step = (by) => {
    const rows = shown("[data-row]");
    const at = rows.indexOf(document.activeElement);
    const next = at < 0 ? 0 : Math.min(Math.max(at + by, 0), rows.length - 1);
    focus(rows[next]);
  };

  document.addEventListener("keydown", (event) => {
    const help = document.getElementById("sk-keys");
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (isTyping(event.target) || !help || help.open) return;
    if (event.key === "?") help.showModal();
    else if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (["a", "r", "e", "w", "f"].includes(event.key)) focus(shown(`[data-key="${event.key}"]`)[0]);
    else return;
    event.preventDefault();
  });

  // a double click on a button that changes something sends it once
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "1";
    sessionStorage.setItem("sent", form.action);
  });
  addEventListener("pageshow", () => {
    document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent);
  });

  // what was typed outlives a session that ended meanwhile, for the same person alone; it goes when
  // the server has taken it, when they log out, and when somebody else is there
  const forget = (isGone) => Object.keys(sessionStorage)
    .filter((key) => key.startsWith("draft:") && isGone(key))
    .forEach((key) => sessionStorage.removeItem(key));
  document.getElementById("logout-form")?.addEventListener("submit", () => forget(() => true));
  document.querySelectorAll("textarea[data-draft]").forEach((area) => {
    const mine = `draft:${area.dataset.draft}:`;
    forget((key) => !key.startsWith(mine));
    const taken = `${mine}${sessionStorage.getItem("sent")}:`;
    if (document.querySelector(".messagelist .success")) forget((key) => key.startsWith(taken));
    // after a refusal the address is the form's own
    const place = `${mine}${area.form.action}:${area.name}`;
    if (!area.value) area.value = sessionStorage.getItem(place) || "";
    area.addEventListener("input", () => sessionStorage.setItem(place, area.value));
  });

  const nav = document.querySelector(".sk-nav[data-count]");
  if (!nav) return;
  const count = nav.querySelector("[data-waiting]");
  const bare = document.title.replace(/^\(\d+\) /, "");
  const look = async () => {
    if (document.hidden) return;
    const answer = await fetch(nav.dataset.count, { headers: { accept: "application/json" } });
    if (!answer.ok || answer.redirected) return;
    const { waiting } = await answer.json();
    count.textContent = waiting;
    count.hidden = !waiting;
    document.title = waiting ? `(${waiting}) ${bare}` : bare;
  };
  setInterval(() => look().catch(() => {}), 15000);
})();
