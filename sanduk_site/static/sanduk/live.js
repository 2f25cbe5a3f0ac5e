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
    let isPaused = false;
    let isPlanned = false;

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
      if (isPaused) { state.textContent = `Paused, ${held.length} new`; return; }
      list.append(...held.splice(0).map(built));
      while (list.childElementCount > KEEP) list.firstElementChild.remove();
      list.scrollTop = list.scrollHeight;
    };

    const source = new EventSource(`${box.dataset.live}?after=${box.dataset.after}`);
    const say = (words) => { if (!isPaused) state.textContent = words; };
    source.addEventListener("open", () => say("Live"));
    source.addEventListener("error", () => say(source.readyState === EventSource.CLOSED ? "The connection ended; reload" : "Reconnecting"));
    source.addEventListener("line", (message) => {
      held.push(JSON.parse(message.data));
      if (held.length > KEEP) held.shift();
      if (!isPlanned) { isPlanned = true; setTimeout(put, 60); }
    });
    source.addEventListener("ended", () => {
      source.close();
      put();
      state.textContent = "Ended; reload for its report";
      box.querySelector("[data-reload]").hidden = false;
    });

    const set = (on) => {
      isPaused = on;
      pause.setAttribute("aria-pressed", String(on));
      pause.textContent = on ? "Follow" : "Pause";
      if (!on) { say("Live"); put(); } else put();
    };
    pause.hidden = false;
    box.querySelector("[data-reload]").hidden = true;
    pause.addEventListener("click", () => set(!isPaused));
    list.addEventListener("wheel", (event) => { if (event.deltaY < 0 && !isPaused) set(true); }, { passive: true });
    addEventListener("pagehide", () => source.close());
    list.scrollTop = list.scrollHeight;
  };

  document.querySelectorAll("[data-live]").forEach(follow);
})();
