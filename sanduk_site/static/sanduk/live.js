// The live trace: lines from the server, put in as text. The browser resumes by Last-Event-ID.
"use strict";
(() => {
  const KEEP = 2000;
  const WORDS = { step: "sanduk", text: "says", tool: "tool", problem: "problem", note: "note", stderr: "stderr" };

  const follow = (box) => {
    const list = box.querySelector("[data-lines]");
    const state = box.querySelector("[data-state]");
    const pause = box.querySelector("[data-pause]");
    const mould = box.querySelector("[data-line]").content.firstElementChild;
    const held = [];
    let link = "Connecting";
    let isPaused = false;
    let isPlanned = false;
    let hasEnded = false;

    // one place says how it stands: an end outranks a pause, and that the connection
    const tell = () => {
      if (hasEnded) state.textContent = "Ended; reload for its report";
      else state.textContent = isPaused ? `Paused, ${held.length} new` : link;
    };

    const built = (line) => {
      const row = mould.cloneNode(true);
      const [time, word, text] = row.children;
      row.className = line.kind in WORDS ? `sk-${line.kind}` : "sk-text";
      time.textContent = line.clock;
      time.dateTime = line.at;
      word.textContent = WORDS[line.kind] || line.kind;
      text.textContent = line.detail ? `${line.text}\n${line.detail.slice(0, 2000)}` : line.text;
      return row;
    };

    const put = () => {
      isPlanned = false;
      tell();
      if (isPaused && !hasEnded) return;
      list.append(...held.splice(0).map(built));
      while (list.childElementCount > KEEP) list.firstElementChild.remove();
      if (!isPaused) list.scrollTop = list.scrollHeight;
    };

    const clock = figureOf("took");
    const tick = () => {
      const since = Date.parse(clock.dataset.since);
      if (since) clock.textContent = span(Math.max(0, Math.round((Date.now() - since) / 1000)));
    };
    const ticking = clock ? setInterval(tick, 1000) : 0;

    const source = new EventSource(`${box.dataset.live}?after=${box.dataset.after}`);
    const linked = (words) => { link = words; tell(); };
    source.addEventListener("open", () => linked("Live"));
    source.addEventListener("error", () => linked(source.readyState === EventSource.CLOSED ? "The connection ended; reload" : "Reconnecting"));
    source.addEventListener("line", (message) => {
      held.push(JSON.parse(message.data));
      if (held.length > KEEP) held.shift();
      if (!isPlanned) { isPlanned = true; setTimeout(put, 60); }
    });
    source.addEventListener("figures", (message) => {
      const told = JSON.parse(message.data);
      for (const name of ["cost", "tokens", "calls", "seal"]) {
        const place = figureOf(name);
        if (place && told[name]) place.textContent = told[name];
      }
      if (clock && told.since) clock.dataset.since = told.since;
      repaint(told.chip);
    });
    source.addEventListener("ended", () => {
      source.close();
      clearInterval(ticking);
      hasEnded = true;
      put();
      pause.hidden = true;
      box.querySelector("[data-reload]").hidden = false;
      document.querySelectorAll("[data-stop]").forEach((form) => form.remove());
    });

    const set = (on) => {
      isPaused = on;
      pause.setAttribute("aria-pressed", String(on));
      pause.textContent = on ? "Follow" : "Pause";
      put();
    };
    pause.hidden = false;
    box.querySelector("[data-reload]").hidden = true;
    pause.addEventListener("click", () => set(!isPaused));
    list.addEventListener("wheel", (event) => { if (event.deltaY < 0 && !isPaused && !hasEnded) set(true); }, { passive: true });
    addEventListener("pagehide", () => source.close());
    list.scrollTop = list.scrollHeight;
  };

  const figureOf = (name) => document.querySelector(`[data-figure="${name}"]`);

  const span = (seconds) => {
    const two = (number) => String(number).padStart(2, "0");
    if (seconds < 60) return `${seconds}s`;
    const minutes = Math.floor(seconds / 60);
    if (minutes < 60) return `${minutes}m ${two(seconds % 60)}s`;
    return `${Math.floor(minutes / 60)}h ${two(minutes % 60)}m`;
  };

  const repaint = ({ tone, shape, word }) => {
    const chip = document.querySelector("[data-chip] .sk-chip");
    if (!chip) return;
    chip.className = `sk-chip sk-${tone}`;
    chip.querySelector("use").setAttribute("href", `#sk-${shape}`);
    chip.lastChild.textContent = word;
  };

  document.querySelectorAll("[data-live]").forEach(follow);
})();
