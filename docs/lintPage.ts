import { type LintRule, lintRules } from "../sdk/policy/index.ts";

function section([code, rule]: [code: string, rule: LintRule]): string {
  const severities = rule.severities.map((severity) => `\`${severity}\``).join(" or ");
  return [
    `## ${code}`,
    `${rule.title} (${severities}).`,
    rule.means,
    `**Why it matters.** ${rule.matters}`,
    `**How to fix it.** ${rule.mend}`,
  ].join("\n\n");
}

/** Returns the page about lint findings, generated from `lintRules`. */
export function lintPage(note: string): string {
  const head = `# Lint findings

\`lint\` of \`@gatehouse-access/sdk/policy\` checks devices, public keys and firewall rules, and optionally API keys and
pending invitations. An \`error\` is a mistake in the policy. A \`warning\` is a policy that admits more, or has less effect,
than it seems to. An \`info\` is a policy that could be simpler or clearer. Inactive rules are skipped.

The effects of rules and keys are evaluated over the devices, and over a set of login names and addresses. This set
contains \`root\`, the names and addresses that the patterns spell, and those that were added. A part of a pattern that
spells no text adds one example, and a pattern with unusual syntax adds none. If a finding mentions "evaluated" logins or
addresses, check that the set contains those that the rule is for. If a policy has no devices, no rule is reported as
without effect.`;
  return [note, head, ...Object.entries(lintRules).map(section)].join("\n\n");
}
