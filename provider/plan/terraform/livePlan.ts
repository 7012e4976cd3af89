import type { StateResource, Step } from "../../engine/index.ts";
import { UNKNOWN } from "../../engineMarks.ts";
import type { ResourceDefinition } from "../../model/definition.ts";
import { inParallel } from "../../parallel.ts";
import { isSameService } from "../../service/connection.ts";
import type { Row } from "../../terraform/types.ts";
import { firstOf } from "../../words.ts";
import type { ResourceChange } from "./planJson.ts";
import { kinds, type PlanReader } from "./planReader.ts";

/** The result of reading a live object: its inputs and outputs, or the reason why it could not be read. */
type LiveReading =
  /** `state` is undefined if the object no longer exists. */
  { readonly state: Readonly<Record<string, unknown>> | undefined } | { readonly problem: string };

/** Reads the live object of a resource. @param state the inputs and outputs in the state, in canonical form */
export type ReadLive = (
  definition: ResourceDefinition,
  id: string,
  state: Readonly<Record<string, unknown>>,
) => Promise<LiveReading>;

/** The comparison of a plan with the live objects. */
export interface ComparedPlan {
  /**
   * The steps of the plan, compared with the live objects instead of the state. Omits existing objects on other
   * services.
   */
  readonly steps: readonly Step[];
  /**
   * The steps that show the difference between the state and the live objects. A resource that could not be read has a
   * step only if the refresh of the plan found an out-of-band change.
   */
  readonly drift: readonly Step[];
  /** The resources in the state, without the resources on other services. */
  readonly resources: readonly StateResource[];
  /** Sentences about resources that could not be compared. */
  readonly notEvaluated: readonly string[];
}

/** The number of objects that are read concurrently. */
const PARALLEL = 16;

const NAMED_MAX = 5;

/**
 * Compares the resources of a plan with their live objects. A plan is not sufficient to find drift. With
 * `-refresh=false`, it contains no out-of-band changes. With `-target`, it contains only some of them. Objects can also
 * change after the plan is created.
 * @param changes the changes of all resources of this provider
 * @param service address of the service on which `read` reads objects
 */
export async function compareWithLive(
  reader: PlanReader,
  changes: readonly ResourceChange[],
  service: string,
  read: ReadLive,
): Promise<ComparedPlan> {
  const compared = await inParallel(changes, PARALLEL, (change) => compare(reader, change, service, read));
  const unread = new Map<string, string[]>();
  for (const [index, { problem }] of compared.entries()) {
    if (problem === undefined) continue;
    unread.set(problem, [...(unread.get(problem) ?? []), changes[index]?.address ?? ""]);
  }
  return {
    steps: compared.flatMap(({ step }) => step ?? []),
    drift: compared.flatMap(({ drift }) => drift),
    resources: compared.flatMap(({ resources }) => resources),
    notEvaluated: [...unread].map(
      ([problem, addresses]) =>
        `${firstOf(addresses, NAMED_MAX)}: not compared with the live service: ${problem}`,
    ),
  };
}

interface Compared {
  readonly step?: Step;
  readonly drift: readonly Step[];
  readonly resources: readonly StateResource[];
  readonly problem?: string;
}

async function compare(
  reader: PlanReader,
  change: ResourceChange,
  service: string,
  read: ReadLive,
): Promise<Compared> {
  const row = reader.stateOf(change);
  if (!row) return { step: reader.step(change), drift: [], resources: [] };
  const own = reader.serviceOf(change);
  if (own !== undefined && own !== UNKNOWN && !isSameService(own, service)) {
    const problem = `the object is on another service (${own})`;
    return { drift: reader.plannedDrift(change), resources: [], problem };
  }
  const resources = reader.resource(change, row);
  const reading = await readObject(reader, change, row, read);
  if ("problem" in reading) {
    const { problem } = reading;
    return { step: reader.step(change), drift: reader.plannedDrift(change), resources, problem };
  }
  if (!reading.state)
    return { step: reader.step(change), drift: reader.drift(change, row, undefined), resources };
  const live = reader.liveValues(change, row, reading.state);
  const drift = reader.drift(change, row, live);
  return {
    step: reader.stepFromLive(change, row, live),
    drift: drift.length > 0 ? drift : [reader.unchanged(change, row, live)],
    resources,
  };
}

async function readObject(
  reader: PlanReader,
  change: ResourceChange,
  row: Row,
  read: ReadLive,
): Promise<LiveReading> {
  // If the service of an object is unknown, the object is not read on this service. It would not be found there and
  // would be treated as deleted.
  if (reader.serviceOf(change) === UNKNOWN)
    return { problem: "the address of its service is unknown in the plan" };
  const definition = kinds.get(change.type)?.definition;
  if (!definition || typeof row.id !== "string") return { problem: "the state does not contain its id" };
  return read(definition, row.id, reader.canonicalState(change, row));
}
