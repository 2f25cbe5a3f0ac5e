// The live trace: lines from the server, put in as text. The browser resumes by Last-Event-ID.
// What else changed comes as the page itself, of which the marked parts are put in place.
"use strict";
(() => {
  const KEEP = 2000;
  const CALM_MS = 10000; // between two looks at the page for calls alone
  const WORDS = { step: "sanduk", text: "says", tool: "tool", problem: "problem", note: "note", stderr: "stderr" };

  const follow = (box) => {
    const list = box.querySelector("[data-lines]");
    const empty = box.querySelector("[data-empty]");
    const state = box.querySelector("[data-state]");
    const pause = box.querySelector("[data-pause]");
    const mould = box.querySelector("[data-line]").content.firstElementChild;
    const held = [];
    let link = "Connecting";
    let isPaused = false;
    let isPlanned = false;
    let hasEnded = false;
    let isWhole = false; // what the page says beside the trace is of its end, too

    // one place says how it stands: an end outranks a pause, and that the connection
    const tell = () => {
      if (hasEnded) state.textContent = isWhole ? "Ended" : "Ended; reload for its report";
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
      if (empty && list.childElementCount) empty.hidden = true;
      if (!isPaused) list.scrollTop = list.scrollHeight;
    };

    const tick = () => {
      const clock = figureOf("took"); // it is another one when the part was renewed
      const since = clock ? Date.parse(clock.dataset.since) : 0;
      if (since) clock.textContent = span(Math.max(0, Math.round((Date.now() - since) / 1000)));
    };
    const ticking = setInterval(tick, 1000);

    let stood = box.dataset.stands; // how the run stood when the page was made
    let looking = 0;
    let asked = 0;
    // one look at a time counts: the last that was begun
    const look = async () => {
      clearTimeout(looking);
      looking = 0;
      const mine = ++asked;
      const isOver = hasEnded;
      const isDone = await renewed(() => mine === asked).catch(() => false);
      tick();
      if (!isDone || !isOver) return;
      isWhole = true;
      box.querySelector("[data-reload]").hidden = true;
      tell();
    };

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
      const clock = figureOf("took");
      if (clock && told.since) clock.dataset.since = told.since;
      repaint(told.chip);
      const isElsewhere = told.stands !== stood;
      stood = told.stands;
      if (isElsewhere) look();
      else if (!looking) looking = setTimeout(look, CALM_MS);
    });
    source.addEventListener("ended", () => {
      source.close();
      clearInterval(ticking);
      hasEnded = true;
      put();
      pause.hidden = true;
      box.querySelector("[data-reload]").hidden = false;
      document.querySelectorAll("[data-stop]").forEach((form) => form.remove());
      look();
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

  // the parts that say something else now; false when no page came, or none but an older one
  const renewed = async (isWanted) => {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok || answer.redirected) return false;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!isWanted() || !page.querySelector("[data-part]")) return false;
    document.querySelectorAll("[data-part]").forEach((old) => {
      const part = page.querySelector(`[data-part="${old.dataset.part}"]`);
      if (part && part.textContent !== old.textContent) swap(old, document.adoptNode(part));
    });
    // what was done a while ago is told by the parts; what was not done stays
    document.querySelectorAll(".messagelist .success").forEach((line) => line.remove());
    return true;
  };

  // what was open stays open, and what had the focus has it
  const swap = (old, part) => {
    const reached = (from) => [...from.querySelectorAll("a[href], button, summary, [tabindex]")];
    const at = reached(old).indexOf(document.activeElement);
    const opened = [...old.querySelectorAll("details")].map((each) => each.open);
    part.querySelectorAll("details").forEach((each, place) => { each.open = Boolean(opened[place]); });
    old.replaceWith(part);
    if (at >= 0) reached(part)[at]?.focus({ preventScroll: true });
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
