import type { Declaration } from "@gatehouse-access/sdk";
import { RunRecord } from "../lifecycle/runRecord.ts";
import { UrnPatterns, urnName, urnScope } from "../urn.ts";

/** The part of a lifecycle's runtime that the two Pulumi front ends share: resources have URNs. */
export const pulumiRun = (env: NodeJS.ProcessEnv = process.env) => ({
  run: new RunRecord(),
  declaration: (_: unknown, urn: string | undefined): Declaration | undefined =>
    urn === undefined ? undefined : { ...urnScope(urn), resource: urnName(urn) },
  isReplacementAsked: replacementsAsked(env),
});

/** The resources that `gatehouse` replaces on request: its environment names them, since no engine tells a provider. */
function replacementsAsked(env: NodeJS.ProcessEnv): (urn: string) => boolean {
  let asked: UrnPatterns | undefined;
  return (urn) => {
    asked ??= new UrnPatterns(JSON.parse(env.GATEHOUSE_REPLACE ?? "[]") as string[]);
    return asked.has(urn);
  };
}
