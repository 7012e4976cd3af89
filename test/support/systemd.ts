import { spawnSync } from "node:child_process";
import { expect } from "vitest";

const analyze = (...args: readonly string[]) => {
  const { status, stdout, stderr } = spawnSync("systemd-analyze", args, { encoding: "utf8" });
  return { status, output: `${stdout ?? ""}${stderr ?? ""}` };
};

const version = Number(/^systemd (\d+)/.exec(analyze("--version").output)?.[1] ?? 0);

/** The reason why systemd cannot check units. Undefined if it can check them. */
export const withoutSystemd: string | undefined =
  version < 250 ? "skipped: systemd-analyze 250 or newer is not installed" : undefined;

/** Fails unless systemd accepts these unit files. The programs that the units start must exist. */
export function expectUnderstood(...units: readonly string[]): void {
  // Ignores errors in other units of this machine that the tested units depend on.
  const { status, output } = analyze("verify", "--man=no", "--recursive-errors=no", ...units);
  expect(output.split("\n").filter((line) => line.includes("gatehouse"))).toEqual([]);
  expect(status, output).toBe(0);
}

/**
 * Fails if `systemd-analyze security` reports a higher exposure level than this one for a unit. The level is in tenths:
 * 15 is the level 1.5.
 */
export function expectHardened(unit: string, exposure: number): void {
  const { status, output } = analyze("security", "--offline=yes", `--threshold=${exposure}`, unit);
  expect(output).toContain("Overall exposure level");
  expect(status, output).toBe(0);
}
