import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const MOVED_CLOCK = fileURLToPath(new URL("../../../support/movedClock.ts", import.meta.url));

/** The clock of this process and of a service. */
export interface SharedClock {
  /** The settings of the service. */
  readonly env: Readonly<Record<string, string>>;
  /** Moves both clocks forwards. */
  advance(milliseconds: number): void;
  /** Restores the clock of this process. */
  stop(): void;
}

/** Starts a clock that a test can move. */
export function startClock(): SharedClock {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  const file = join(folder, "clock");
  const RealDate = Date;
  let moved = 0;
  writeFileSync(file, "0");
  const now = () => RealDate.now() + moved;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    get: (target, name, receiver) => (name === "now" ? now : Reflect.get(target, name, receiver)),
  });
  return {
    env: { NODE_OPTIONS: `--import=${MOVED_CLOCK}`, MOVED_CLOCK: file },
    advance(milliseconds) {
      moved += milliseconds;
      writeFileSync(file, String(moved));
    },
    stop() {
      globalThis.Date = RealDate;
      rmSync(folder, { recursive: true });
    },
  };
}
