import { spawnSync } from "node:child_process";
import { expect } from "vitest";

const analyze = (...args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync("systemd-analyze", args, { encoding: "utf8" });
  return { status, output: `${stdout ?? ""}${stderr ?? ""}` };
};

const version = Number(/^systemd (\d+)/.exec(analyze("--version").output)?.[1] ?? 0);

/** Why units cannot be held to what systemd says of them; undefined where they can. */
export const withoutSystemd: string | undefined =
  version < 250 ? "skipped: there is no systemd-analyze of version 250 or newer" : undefined;

/** Holds units, by their files, to what systemd understands; what they start must be there. */
export function expectUnderstood(...units: readonly string[]): void {
  // Units of this machine that they need may have faults of their own.
  const { status, output } = analyze("verify", "--man=no", "--recursive-errors=no", ...units);
  expect(output.split("\n").filter((line) => line.includes("gatehouse"))).toEqual([]);
  expect(status, output).toBe(0);
}

/** Holds a unit to what it may leave open at most, in tenths of systemd's points. */
export function expectHardened(unit: string, exposure: number): void {
  const { status, output } = analyze("security", "--offline=yes", `--threshold=${exposure}`, unit);
  expect(output).toContain("Overall exposure level");
  expect(status, output).toBe(0);
}
