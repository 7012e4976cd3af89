type Values = Readonly<Record<string, string>>;

/** Shows the form with this id, and hides the other parts of the page. */
function showForm(id: string): HTMLFormElement {
  showOnly(id);
  return byId<HTMLFormElement>(id);
}

/**
 * Calls `send` with the form's values when the user submits the form. Only one call runs at a time. Leading and
 * trailing spaces are removed from all values except passwords, because copied text often contains such spaces.
 */
function onSubmit(form: HTMLFormElement, send: (values: Values) => Promise<void>): void {
  const box = form.querySelector<HTMLInputElement>("[data-shows]");
  box?.addEventListener("change", () => {
    const field = inputOf(form, box.dataset.shows ?? "");
    if (field) field.type = box.checked ? "text" : "password";
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (form.getAttribute("aria-busy") === "true") return;
    form.setAttribute("aria-busy", "true");
    clearErrors(form);
    showMessage("busy", "Please wait …");
    try {
      await send(valuesOf(form));
    } catch (error) {
      showMessage("bad", "This page failed. Please reload it.");
      throw error;
    } finally {
      form.removeAttribute("aria-busy");
    }
  });
}

const inputOf = (form: HTMLFormElement, name: string): HTMLInputElement | undefined =>
  [...form.querySelectorAll<HTMLInputElement>("input[name]")].find((input) => input.name === name);

function valuesOf(form: HTMLFormElement): Values {
  const inputs = [...form.querySelectorAll<HTMLInputElement>("input[name]")];
  return Object.fromEntries(
    inputs.map(({ name, value, autocomplete }) => [
      name,
      autocomplete.endsWith("-password") ? value : value.trim(),
    ]),
  );
}

function clearErrors(form: HTMLFormElement): void {
  for (const error of form.querySelectorAll(".error")) error.textContent = "";
  for (const input of form.querySelectorAll("input")) input.removeAttribute("aria-invalid");
}

const partOf = (input: HTMLInputElement, part: "hint" | "error"): HTMLElement | null =>
  document.getElementById(`${input.id}-${part}`);

function markField(input: HTMLInputElement, text: string): void {
  input.setAttribute("aria-invalid", "true");
  const error = partOf(input, "error");
  if (error) error.textContent = sentence(text);
}

/** Errors by field name, and errors that belong to no field. */
interface FieldErrors {
  readonly fields: readonly (readonly [name: string, text: string])[];
  readonly others: readonly string[];
}

/**
 * Parses the errors in a response. The body is either a message such as `name must be a string; name or email: text`, or an array
 * with the names of fields whose values are taken (status 409) or invalid.
 */
function errorsOf(form: HTMLFormElement, answer: Answer): FieldErrors {
  const { status, body } = answer;
  if (Array.isArray(body)) {
    const textFor = (name: string) => {
      const input = inputOf(form, name);
      const hint = input && partOf(input, "hint")?.textContent;
      return status === 409 ? "is already taken" : `is not allowed${hint ? `; allowed: ${hint}` : ""}`;
    };
    return { fields: body.map((name) => [String(name), textFor(String(name))]), others: [] };
  }
  if (![400, 401, 409, 422].includes(status)) return { fields: [], others: [reasonOf(answer)] };
  const fields: [string, string][] = [];
  const others: string[] = [];
  for (const part of messageOf(answer).split("; ")) {
    const [, names = "", text = ""] = /^([a-z_]+(?:(?:, | or )[a-z_]+)*)(?::| is)? (.+)$/.exec(part) ?? [];
    const known = names.split(/, | or /).filter((name) => inputOf(form, name));
    if (known.length === 0) others.push(part ? sentence(part) : reasonOf(answer));
    for (const name of known) fields.push([name, text]);
  }
  return { fields, others };
}

/**
 * Shows the errors of a rejected form next to the fields and in the page's message, and moves the focus to the message.
 */
function showErrors(form: HTMLFormElement, answer: Answer): void {
  const { fields, others } = errorsOf(form, answer);
  const labels: string[] = [];
  for (const [name, text] of fields) {
    const input = inputOf(form, name);
    if (input) markField(input, text);
    labels.push(input?.labels?.[0]?.textContent ?? name);
  }
  const summary = labels.length > 0 ? [`Please check: ${labels.join(", ")}.`] : [];
  showMessage("bad", ...summary, ...others);
}
