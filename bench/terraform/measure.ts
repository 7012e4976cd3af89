import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { MOST_APPLIED } from "./arguments.ts";
import { startCountingProxy } from "./countingProxy.ts";
import { builtinRows, type Installed, KINDS, type Kind, TimedModule } from "./modules.ts";
import type { BenchService } from "./service.ts";

/** The commands that are measured. */
export type Command = "plan (create)" | "apply" | "plan (no-op)" | "destroy";

/** Seconds of one command. */
export interface Timing {
  readonly size: number;
  readonly command: Command;
  readonly gatehouse: number;
  /** Undefined where only rules are measured. */
  readonly builtin: number | undefined;
}

/** What is measured with. */
export interface Bench {
  readonly folder: string;
  readonly installed: Installed;
  readonly service: BenchService;
  /** Called with each command's timing as soon as it is there. */
  report(timing: Timing): void;
}

/** States of modules of both kinds, as applied. */
export type States = Readonly<Record<Kind, ReturnType<TimedModule["state"]>>>;

/** What came of one size. */
export interface Measured {
  readonly timings: readonly Timing[];
  readonly states: States;
  /** Requests of a plan that changes nothing, by method and path. */
  readonly requests: ReadonlyMap<string, number>;
}

/** Runs of each plan, of which the fastest counts. */
const PLANS = 2;

/**
 * Measures all commands with so many resources, or plans only where they are too many.
 * @param smaller states of a smaller size, from which those that are not applied are made
 */
export async function measure(bench: Bench, size: number, smaller: States | undefined): Promise<Measured> {
  const { service } = bench;
  const modules = await makeModules(bench, size);
  const { gatehouse, builtin } = modules;
  const timings: Timing[] = [];
  const add = (command: Command, { gatehouse, builtin }: Partial<Record<Kind, number>>) => {
    const timing = { size, command, gatehouse: gatehouse ?? Number.NaN, builtin };
    timings.push(timing);
    bench.report(timing);
  };
  add("plan (create)", await fastest(modules, (module) => module.planCreate()));
  if (size <= MOST_APPLIED) {
    add("apply", { gatehouse: await gatehouse.apply(), builtin: await builtin.apply() });
  } else if (smaller) {
    gatehouse.writeState(smaller.gatehouse, await service.makeRules(size));
    builtin.writeState(smaller.builtin, builtinRows(smaller.builtin, size));
  }
  const states = { gatehouse: gatehouse.state(), builtin: builtin.state() };
  add("plan (no-op)", await fastest(modules, (module) => module.planNothing()));
  const requests = await requestsOf(gatehouse, service.url);
  if (size <= MOST_APPLIED) add("destroy", { gatehouse: await gatehouse.destroy() });
  return { timings, states, requests };
}

async function makeModules(
  { folder, installed, service }: Bench,
  size: number,
): Promise<Record<Kind, TimedModule>> {
  const parent = join(folder, String(size));
  mkdirSync(parent);
  return {
    gatehouse: await TimedModule.make("gatehouse", size, join(parent, "gatehouse"), {
      ...installed.env,
      ...service.env,
    }),
    builtin: await TimedModule.make("builtin", size, join(parent, "builtin"), installed.env),
  };
}

/** Runs a command on both modules in turn; the fastest of each. */
async function fastest(
  modules: Readonly<Record<Kind, TimedModule>>,
  run: (module: TimedModule) => Promise<number>,
): Promise<Record<Kind, number>> {
  const best: Record<Kind, number> = {
    gatehouse: Number.POSITIVE_INFINITY,
    builtin: Number.POSITIVE_INFINITY,
  };
  for (let turn = 0; turn < PLANS; turn += 1) {
    for (const kind of KINDS) best[kind] = Math.min(best[kind], await run(modules[kind]));
  }
  return best;
}

/** The requests of a plan of its own, through a proxy: the measured ones go without it. */
async function requestsOf(module: TimedModule, url: string): Promise<ReadonlyMap<string, number>> {
  const proxy = await startCountingProxy(url);
  try {
    await module.with({ GATEHOUSE_URL: proxy.url }).planNothing();
    return proxy.requests();
  } finally {
    await proxy.stop();
  }
}
