function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no ${id}`);
  return element as T;
}

type Tone = "good" | "bad" | "note" | "busy";

/** Shows text in the page's message. Moves the focus to the message unless the tone is `busy`. */
function showMessage(tone: Tone, ...lines: readonly string[]): void {
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

/** Shows the part of the page with this id, and hides the other parts. */
function showOnly(id: string | undefined): void {
  for (const part of document.querySelectorAll<HTMLElement>("[data-part]")) part.hidden = part.id !== id;
}

/** Shows the result of a used link, and hides everything else. */
function finish(...lines: readonly string[]): void {
  forgetLink();
  for (const form of document.forms) form.reset();
  showOnly(undefined);
  showMessage("good", ...lines);
}
