import type { MatcherName } from "./written/matchers.ts";
import type { CalledMatcher } from "./written/running.ts";

const SUBJECTS: Record<MatcherName, string> = {
  toAllow: "access",
  onlyFrom: "access",
  exactlyOneOwner: "members",
  everyKeyExpires: "apiKeys",
  toSatisfy: "…",
  toAllSatisfy: "…",
};

/** An assertion as it is written in a policy file, on one line. */
export function assertionText({ matcher, negated, args }: CalledMatcher): string {
  return `expect(${SUBJECTS[matcher]})${negated ? ".not" : ""}.${matcher}(${args.map(literal).join(", ")})`;
}

function literal(value: unknown): string {
  if (typeof value === "function")
    return value.name === "" || value.name === "where" ? "() => …" : value.name;
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? String(value);
  const fields = Object.entries(value).map(([name, field]) => `${name}: ${literal(field)}`);
  return fields.length === 0 ? "{}" : `{ ${fields.join(", ")} }`;
}
