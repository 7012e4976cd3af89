import { type Mutant, mutantsOf } from "./mutant.ts";

/** The guards of the agent. */
export const agentMutants: readonly Mutant[] = mutantsOf({
  "agent/Agent.ts": {
    "test/agent/refusedTunnels.test.ts > enrolls again after": {
      "An agent ends only if the service proves that it sent the refusal.":
        "[-error.isFromService-]{+true+} &&",
      "An agent whose device was enrolled before does not end.":
        "const wasEnrolled = [-this.#wasEnrolled || this.#options.pin.key !== undefined-]{+false+};",
    },
  },
});
