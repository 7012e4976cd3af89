function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no ${id}`);
  return element as T;
}

type Tone = "good" | "bad" | "note" | "busy";

/** Says something in the page's one place for it, and leads there, but for what is soon over. */
function say(tone: Tone, ...lines: readonly string[]): void {
  const message = byId("message");
  message.className = tone;
  message.replaceChildren(
    ...lines.map((line) => {
      const paragraph = document.createElement("p");
      paragraph.textContent = line;
      return paragraph;
    }),
  );
  if (tone !== "busy") message.focus();
}

/** Shows the part of the page with this id, and none of the others. */
function showOnly(id: string | undefined): void {
  for (const part of document.querySelectorAll<HTMLElement>("[data-part]")) part.hidden = part.id !== id;
}

/** Says that the link has done what it is for; nothing is left to do on the page. */
function finish(...lines: readonly string[]): void {
  forgetLink();
  for (const form of document.forms) form.reset();
  showOnly(undefined);
  say("good", ...lines);
}
