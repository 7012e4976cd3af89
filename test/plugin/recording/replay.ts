import type grpc from "@grpc/grpc-js";
import { environmentWithout } from "../../support/command.ts";
import { startEngine } from "../support/engine.ts";
import { Correspondence } from "./correspondence.ts";
import { decidedByRelease } from "./marks.ts";
import { type Json, methodOf, type Outcome, readError, readResponse, writeRequest } from "./messages.ts";
import { type PluginProcess, startPlugin } from "./pluginProcess.ts";
import type { Exchange, RecordedCommand, RecordedStep, Recording } from "./recording.ts";
import type { Scenario, Step } from "./scenario.ts";
import { openStage, type Stage } from "./stage.ts";

type Command = Extract<Step, { command: unknown }>;

/**
 * Says to the plugin what the CLI said to it, at a service of its own, and does by hand what was done by hand.
 * @throws Error naming the exchange, and each place where the answer is not as recorded
 */
export async function replay(scenario: Scenario, recording: Recording): Promise<void> {
  const stage = await openStage(scenario);
  const engine = await startEngine();
  try {
    const again = new Replay(stage, engine.address);
    for (const [at, step] of scenario.steps.entries()) {
      const recorded = recording.steps[at];
      if (!recorded) throw new Error(`step ${at + 1} was never recorded`);
      await again.step(step, recorded);
    }
  } finally {
    engine.stop();
    await stage.close();
  }
}

class Replay {
  readonly #stage: Stage;
  readonly #values = new Correspondence();

  constructor(stage: Stage, engine: string) {
    this.#stage = stage;
    this.#values.tell({ ...stage.named, engine });
    for (const fields of Object.values(decidedByRelease)) this.#values.tell(fields);
  }

  async step(step: Step, recorded: RecordedStep): Promise<void> {
    const stage = this.#stage;
    if ("byHand" in step) {
      if (!("byHand" in recorded) || recorded.byHand !== step.byHand)
        throw new Error(`${step.byHand}: was never recorded`);
      const more = (await step.act(stage.fleet, stage.named)) ?? {};
      stage.named = { ...stage.named, ...more };
      this.#values.tell(more);
      return;
    }
    if ("byHand" in recorded) throw new Error(`${recorded.byHand}: is not in the scenario`);
    const processes = await Promise.all(
      recorded.processes.map((args) =>
        startPlugin(this.#values.toLive(args), {
          ...environmentWithout("GATEHOUSE_", "PULUMI_"),
          ...this.#values.toLive(recorded.env),
        }),
      ),
    );
    try {
      await this.#exchange(step, recorded, processes);
    } finally {
      for (const { kill } of processes) kill();
    }
  }

  /** Each request is sent when all have their answers that had them before it in the recording. */
  async #exchange(
    { interruptedAt }: Command,
    { command, exchanges }: RecordedCommand,
    processes: readonly PluginProcess[],
  ): Promise<void> {
    let held = interruptedAt === undefined ? undefined : this.#stage.proxy.hold(interruptedAt);
    const pending = new Map<number, Promise<void>>();
    for (const [at, exchange] of exchanges.entries()) {
      const isInterruption = held !== undefined && exchange.method === "Cancel";
      if (isInterruption) await Promise.race([held?.arrived, neverAsked(interruptedAt, pending.values())]);
      const plugin = processes[exchange.process] as PluginProcess;
      const where = `pulumi ${command.join(" ")}, exchange ${at + 1}, ${exchange.method}`;
      const compared = this.#one(plugin, exchange, where);
      // After the first difference nobody waits for the others.
      compared.catch(() => {});
      pending.set(at, compared);
      if (isInterruption) {
        await pending.get(at);
        held?.release();
        held = undefined;
      }
      const answered = [...pending.keys()].filter(
        (place) => (exchanges[place]?.answeredAfter ?? place) <= at,
      );
      await Promise.all(answered.map((place) => pending.get(place)));
      for (const place of answered) pending.delete(place);
    }
  }

  async #one(plugin: PluginProcess, exchange: Exchange, where: string): Promise<void> {
    const { method: name, request } = exchange;
    const method = methodOf(name);
    const bytes = writeRequest(method, this.#values.toLive(request));
    const outcome = await plugin.call(method, bytes).then(
      (answer): Outcome => ({ response: readResponse(method.response, answer) }),
      (error: grpc.ServiceError): Outcome => ({ error: readError(error) }),
    );
    const recorded = "error" in exchange ? { error: exchange.error } : { response: exchange.response };
    const differences = this.#values.compare(recorded as unknown as Json, outcome as unknown as Json);
    if (differences.length === 0) return;
    const shown = (value: Json | undefined) => JSON.stringify(value)?.slice(0, 1000);
    const list = differences.map(
      ({ path, recorded: was, live }) =>
        `  ${path}\n    recorded: ${shown(was)}\n    live:     ${shown(live)}`,
    );
    throw new Error(`${where}: the answer is not as recorded:\n${list.join("\n")}`);
  }
}

/** Fails once all calls have their answers: then what is to be held will never be asked for. */
async function neverAsked(request: string | undefined, calls: Iterable<Promise<void>>): Promise<never> {
  await Promise.all(calls);
  throw new Error(`${request}: the service was never asked for it`);
}
