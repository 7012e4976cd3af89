import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { commandsIn, pageText, ROOT } from "../support/pageCommands.ts";
import { pageTests } from "./index.ts";
import { differences, omitted, typed } from "./PageTest.ts";

const pages = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"], {
  cwd: ROOT,
  encoding: "utf8",
})
  .split("\n")
  .filter((path) => path !== "" && !path.startsWith("test/") && existsSync(join(ROOT, path)));

describe("the commands of a page", () => {
  const text = `# Page

## First

1. Do this:

   \`\`\`sh
   # a comment
   gatehouse up \\
     --stack prod    # applies
   for name in a b; do
     echo "$name"
   done
   \`\`\`

## Second

\`\`\`console
$ gatehouse drift
No drift
\`\`\`

\`\`\`ts
$ nothing
\`\`\`
`;
  const up = typed("gatehouse up");
  const loop = typed("for name");
  const drift = omitted("gatehouse drift", "a reason");

  it("are the lines of sh blocks and the lines after a prompt", () => {
    expect(commandsIn(text)).toEqual([
      { heading: "First", line: "gatehouse up \\\n  --stack prod    # applies" },
      { heading: "First", line: 'for name in a b; do\n  echo "$name"\ndone' },
      { heading: "Second", line: "gatehouse drift" },
    ]);
  });

  it("have no difference to a complete list", () => {
    expect(differences(text, [up, loop, drift])).toEqual([]);
  });

  it.each([
    { title: "a line that the list does not have", lines: [up, loop], found: '"gatehouse drift"' },
    { title: "a line in another order", lines: [loop, up, drift], found: '"for name"' },
    { title: "a line that the page does not have", lines: [up, loop, drift, up], found: '"gatehouse up"' },
  ])("differ from a list: $title", ({ lines, found }) => {
    expect(differences(text, lines)).toEqual([expect.stringContaining(found)]);
  });
});

describe("each page", () => {
  const withCommands = pages.filter((path) => commandsIn(pageText(path)).length > 0);

  it("with commands has a test, or a reason for each line", () => {
    const listed = pageTests.map(({ path }) => path);
    expect(withCommands.length).toBeGreaterThan(40);
    expect(listed.toSorted()).toEqual(withCommands.toSorted());
  });

  it.each(pageTests.filter(({ lines }) => lines !== undefined))(
    "lists the lines in order: $path",
    ({ path, lines = [] }) => {
      expect(differences(pageText(path), lines)).toEqual([]);
    },
  );

  it("that another test types is known to this test", () => {
    const unknown = pageTests.flatMap(({ path, lines = [], files = [] }) =>
      [...files, ...lines.flatMap((line) => ("typedIn" in line ? [line.typedIn] : []))].filter(
        (file) => !readFileSync(join(ROOT, file), "utf8").includes(basename(path)),
      ),
    );
    expect(unknown).toEqual([]);
  });

  it("states a reason for each line that no test types", () => {
    const reasons = pageTests.flatMap(({ lines = [] }) =>
      lines.flatMap((line) => ("omitted" in line ? [line.omitted] : [])),
    );
    expect(reasons.filter((reason) => reason.trim().length < 10)).toEqual([]);
  });
});
