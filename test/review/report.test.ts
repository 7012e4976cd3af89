import pc from "picocolors";
import { describe, expect, test } from "vitest";
import type { ReviewedAccess } from "../../provider/privileges/accessLines.ts";
import { code, reviewMarkdown } from "../../provider/review/report/markdown.ts";
import type { NamespaceReview, Review, ReviewedFinding } from "../../provider/review/report/review.ts";
import { type Allowed, objections } from "../../provider/review/report/sections.ts";
import { reviewText } from "../../provider/review/report/text.ts";
import { NOTHING_ALLOWED, wholeReview } from "./support/namespaceReview.ts";

const line = (name: string, more: Partial<ReviewedAccess> = {}): ReviewedAccess => ({
  change: "gained",
  keys: [{ fingerprint: name, name }],
  until: null,
  untilBefore: null,
  logins: ["root"],
  anyLogin: false,
  addresses: ["192.0.2.1"],
  anyAddress: true,
  devices: ["1"],
  where: "web-1",
  ...more,
});

const namespace = (more: Partial<NamespaceReview> = {}): NamespaceReview => ({
  tenant: "1",
  name: "lab",
  access: [],
  members: [],
  lockouts: [],
  missingPermissions: [],
  lint: [],
  evaluated: { devices: 1, keys: 1, rules: 0, sessions: 0, logins: ["root"], addresses: ["192.0.2.1"] },
  coverage: { managed: 1, total: 1, percent: 100, unmanaged: [] },
  ending: { withinDays: 14, objects: [] },
  workloads: [],
  apiKeys: [],
  settings: [],
  privileges: [],
  tests: [],
  notEvaluated: [],
  unknown: [],
  ...more,
});

const review = (...namespaces: readonly Partial<NamespaceReview>[]): Review =>
  wholeReview(...(namespaces.length === 0 ? [{}] : namespaces).map(namespace));

const markdown = (some: Review, max?: number) =>
  reviewMarkdown(some, { ...NOTHING_ALLOWED, ...(max && { max }) });
/** Returns the titles of the folded parts of a comment. */
const folded = (words: string) =>
  [...words.matchAll(/<summary>(.*)<\/summary>$/gm)].map(([, summary]) => summary);
/** Returns the title of a comment. */
const title = (some: Review, allowed: Partial<Allowed> = {}) =>
  /^## .*$/m.exec(reviewMarkdown(some, { ...NOTHING_ALLOWED, ...allowed }))?.[0];
const text = (some: Review) => reviewText(pc.createColors(false), some, NOTHING_ALLOWED);

describe("a review as text", () => {
  test("states that access does not change", () => {
    for (const words of [markdown(review()), text(review())]) expect(words).toContain("No access changes.");
    expect(text(review())).toContain("No blocking findings.");
  });

  test("separates the evaluated logins and addresses from the preceding list", () => {
    expect(markdown(review({ access: [line("ana")] }))).toMatch(/^- [^\n]*\n\n_Evaluated for [^\n]*_\n$/m);
  });

  test("lists keys, logins, addresses and devices, and states that the list is complete", () => {
    const access = [
      line("ana", { change: "lost", logins: ["root", "deploy"], where: "14 devices tagged prod" }),
      line("bob", { keys: ["b", "c", "d", "e", "f"].map((name) => ({ fingerprint: name, name })) }),
      line("carl", { anyAddress: false, addresses: ["10.0.0.1"] }),
      line("dan", { logins: ["otheruser", "root"], anyAddress: false, addresses: ["192.0.2.1"] }),
      line("eve", { logins: ["otheruser", "root"], anyLogin: true }),
    ];
    const words = text(review({ access }));
    expect(words).toContain("- key ana loses logins root and deploy on 14 devices tagged prod");
    expect(words).toContain("+ 5 keys b, c, d and 2 more gain login root on web-1");
    expect(words).toContain("+ key carl gains login root from 10.0.0.1 on web-1");
    expect(words).toContain(
      "+ key dan gains logins root and <any other login> from <any other address> on web-1",
    );
    expect(words).toContain("+ key eve gains every login on web-1");
    expect(words).toContain("No other access changes.");
  });

  test("blocks on lockouts and missing permissions unless flags allow them, and always on failing tests and duplicates", () => {
    const some = {
      ...review({
        lockouts: [{ code: "last-administrator", message: "no administrator is left beside the owner" }],
        missingPermissions: [
          { operation: "inviteMember", reason: "inviteMember is for users", resources: ["bob"] },
        ],
        tests: [
          {
            name: "no root",
            file: "a.policy.ts",
            line: 3,
            ok: false,
            warnings: [],
            durationMs: 1,
            failures: [],
          },
        ],
      }),
      duplicateDeclarations: [{ object: "the key ana", urns: ["urn:a", "urn:b"] }],
    };
    const all = objections(some, NOTHING_ALLOWED);
    expect(all).toHaveLength(4);
    expect(objections(some, { ...NOTHING_ALLOWED, allowLockout: true })).toHaveLength(3);
    const unable = objections(some, { ...NOTHING_ALLOWED, allowMissingPermissions: true }).join();
    expect(unable).not.toContain("inviteMember");
    expect(unable).toContain("no administrator is left");
    for (const words of ["the key ana", "no administrator is left", "inviteMember is for users", "no root"]) {
      expect(all.join("\n")).toContain(words);
      expect(text(some)).toContain(words);
    }
    expect(markdown(some)).toContain("\n**Blocking findings:**\n- duplicate declarations of the key ana");
  });

  test("blocks on unread objects, and on changes that the service would reject", () => {
    const some = {
      ...review({ notEvaluated: ["a key"] }),
      notEvaluated: ["a plan"],
      preflightFailures: ["a tag"],
    };
    expect(objections(some, NOTHING_ALLOWED)).toEqual([
      "a tag",
      "a plan (allow with --allow-incomplete)",
      "lab: a key (allow with --allow-incomplete)",
    ]);
    expect(objections(some, { ...NOTHING_ALLOWED, allowIncomplete: true })).toEqual(["a tag"]);
  });

  test("blocks on new findings that are errors, and on new unanchored patterns that give access", () => {
    const object = { kind: "key", id: "ana", name: "ana" } as const;
    const finding = (more: Partial<ReviewedFinding>): ReviewedFinding => ({
      rule: "unanchored-pattern",
      severity: "warning",
      message: "open",
      object,
      isNew: true,
      ...more,
    });
    const error = finding({ rule: "mistaken-pattern", severity: "error", message: "a CIDR" });
    const of = (lint: readonly ReviewedFinding[], access: readonly ReviewedAccess[]) =>
      objections(review({ lint, access }), NOTHING_ALLOWED);
    expect(of([error, finding({})], [])).toEqual(["lab: a CIDR (allow with --allow-findings)"]);
    expect(of([finding({})], [line("ana", { change: "gained" })])).toHaveLength(1);
    expect(of([finding({})], [line("ana", { change: "lost" }), line("bob", { change: "gained" })])).toEqual(
      [],
    );
    // A finding that is not new does not block. An import reports such findings of existing objects.
    expect(of([{ ...error, isNew: false }], [line("ana", { change: "gained" })])).toEqual([]);
    const allowed = { ...NOTHING_ALLOWED, allowFindings: true };
    expect(objections(review({ lint: [error] }), allowed)).toEqual([]);
  });
});

describe("a comment", () => {
  test("starts with a marker that is the same for every review of the stack", () => {
    const [first] = markdown(review()).split("\n");
    const [second] = markdown(review({ access: [line("ana")] })).split("\n");
    expect(first).toBe("<!-- gatehouse review fleet/prod -->");
    expect(second).toBe(first);
    expect(markdown({ ...review(), stack: "a-->b" }).split("\n")[0]).toBe(
      "<!-- gatehouse review fleet/a___b -->",
    );
  });

  test("has the result and the numbers of changes in its title", () => {
    const lost = { change: "lost" } as const;
    const changes = { access: [line("ana"), line("bob"), line("carl", lost)] };
    expect(title(review())).toBe("## OK: access review of `fleet/prod` (no access changes)");
    expect(title(review(changes))).toBe(
      "## OK: access review of `fleet/prod` (2 keys gain access, 1 key loses access)",
    );
    expect(title(review({ access: [line("ana", lost)] }))).toContain("(1 key loses access)");
    expect(title(review(changes, changes))).toContain("(4 keys gain access, 2 keys lose access)");
    const members = [{ change: "added", email: "dan@example.org", to: "administrator" }] as const;
    expect(title(review({ members }))).toBe(
      "## OK: access review of `fleet/prod` (1 member change; gained privileges: role administrator: member dan&#64;example.org)",
    );
    expect(title(review({ access: [line("ana"), line("ana")] }))).toContain("(1 key gains access)");
    const lockouts = [{ code: "last-administrator", message: "no administrator is left" }] as const;
    expect(title(review({ ...changes, lockouts }, { lockouts }))).toBe(
      "## Blocked: access review of `fleet/prod` (2 blocking findings, 2 keys gain access, 1 key loses access)",
    );
    expect(title(review({ lockouts }))).toContain("(1 blocking finding, no access changes)");
    expect(title(review({ lockouts }), { allowLockout: true })).toMatch(/^## OK: /);
    expect(markdown(review({ lockouts }))).toContain("\n- lab: no administrator is left");
    expect(markdown(review())).not.toContain("locking");
  });

  test("is never OK if a part was not evaluated", () => {
    const parts = { ...review({}, { notEvaluated: ["a key", "a rule"] }), notEvaluated: ["a plan"] };
    expect(title(parts)).toBe(
      "## Blocked: access review of `fleet/prod` (3 blocking findings, no access changes, 3 parts not evaluated)",
    );
    expect(title(parts, { allowIncomplete: true })).toBe(
      "## Incomplete: access review of `fleet/prod` (no access changes, 3 parts not evaluated)",
    );
    // Facts that do not block a change do not make the review incomplete.
    expect(title(review({ unknown: ["a session"] }))).toMatch(/^## OK: /);
  });

  test("is not OK if resources are in namespaces that the plan creates", () => {
    const created = { ...review(), newNamespaces: { namespaces: 1, resources: 2 } };
    expect(title(created)).toBe(
      "## Incomplete: access review of `fleet/prod` (no access changes, 2 resources in new namespaces not evaluated)",
    );
    expect(title({ ...review(), newNamespaces: { namespaces: 1, resources: 0 } })).toMatch(/^## OK: /);
  });

  test("shows the stack in its title as text", () => {
    const some = { ...review(), project: "a`b", stack: "<b>\n# x" };
    expect(title(some)).toBe("## OK: access review of ``a`b/<b>\\u{a}# x`` (no access changes)");
  });

  test("folds the namespaces of several in which neither a key nor a member gains access", () => {
    const gained = { name: "gained", access: [line("ana"), line("bob", { change: "lost" })] };
    const lost = { name: "lost", access: [line("carl", { change: "lost" })], unknown: ["a limitation"] };
    const member = (change: object) => ({ name: "member", members: [change] }) as Partial<NamespaceReview>;
    const words = markdown(review(gained, lost, { name: "same" }));
    expect(words).toContain("\n### Access changes in the namespace gained\n");
    expect(folded(words)).toEqual([
      "The namespace lost: no gained access",
      "The namespace same: no gained access",
    ]);
    const [, fold = ""] = /<details>(.*?)<\/details>/s.exec(words) ?? [];
    expect(fold.match(/^(### .*|- .*)$/gm)).toEqual([
      "### Access changes in the namespace lost",
      expect.stringContaining("`carl` loses"),
      "- No other access changes.",
      "### Limitations in the namespace lost",
      "- a limitation",
    ]);
    // Markdown between HTML tags needs an empty line before and after it.
    expect(fold).toMatch(/<\/summary>\n\n### .*\n\n$/s);

    expect(folded(markdown(review(lost)))).toEqual([]);
    expect(folded(markdown(review(gained, { ...lost, notEvaluated: ["a rule"] })))).toEqual([]);
    for (const change of [
      { change: "added", email: "dan@example.org", to: "administrator" },
      { change: "role", email: "dan@example.org", from: "observer", to: "administrator" },
    ])
      expect(folded(markdown(review(gained, member(change))))).toEqual([]);
    const removed = { change: "removed", email: "dan@example.org", from: "observer" };
    expect(folded(markdown(review(gained, member(removed))))).toEqual([
      "The namespace member: no gained access",
    ]);
  });

  test("shows the names of namespaces as text in headings and in HTML", () => {
    const name = "</summary><img src=x> `a` **b**";
    const access = Array.from({ length: 21 }, (_, n) => line(`key-${n}`));
    const shown = "&#60;/summary&#62;&#60;img src=x&#62; &#96;a&#96; &#42;&#42;b&#42;&#42;";
    const words = markdown(review({ name, access }, { name }));
    expect(folded(words)).toEqual([
      `Access changes in the namespace ${shown}`,
      `The namespace ${shown}: no gained access`,
    ]);
    expect(words).toContain(`\n### Access changes in the namespace ${shown}\n`);
    expect(words).not.toContain("<img");
  });

  test.each([
    ["ana", "`ana`"],
    ["a`b", "``a`b``"],
    ["`a``b`", "``` `a``b` ```"],
    ["a\nb\u202ec", "`a\\u{a}b\\u{202e}c`"],
    ["", "`  `"],
  ])("shows the name %j as text", (name, shown) => {
    expect(code(name)).toBe(shown);
  });

  test("prevents names from formatting, linking or notifying", () => {
    const hostile = "@team [x](http://evil) <img src=x> **b** #1";
    const words = markdown(review({ access: [line("ana", { where: hostile })], unknown: [hostile] }));
    for (const part of ["@team", "](", "<img", "**b**", "#1"]) expect(words).not.toContain(part);
  });

  test("folds long lists, stays within the length limit, and reports the number of omitted lines", () => {
    const access = Array.from({ length: 3000 }, (_, n) => line(`key-${n}`));
    expect(folded(markdown(review({ access: access.slice(0, 50) })))).toEqual(["Access changes"]);
    const lost = { name: "lost", access: [line("ana", { change: "lost" })] };
    for (const max of [2000, 10_000, 65_000]) {
      const words = markdown(review({ access, unknown: ["something"] }, lost), max);
      expect(words.length).toBeLessThanOrEqual(max);
      const shown = words.match(/^- \*\*\+\*\*/gm)?.length ?? 0;
      expect(shown).toBeGreaterThan(5);
      expect(words.match(/<details>/g)).toHaveLength(words.match(/<\/details>/g)?.length ?? 0);
      // The 3000 changes and one closing sentence are list items, so the list has 3001 items.
      expect(words).toContain(`and ${3000 + 1 - shown} more`);
    }
  });
});

test("names cannot control a terminal", () => {
  const words = text(
    review({ access: [line("a\u001b[2Jb", { where: "web\u0007-1" })], unknown: ["x\u001b]0;y"] }),
  );
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the output must not contain these
  expect(words).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
});
