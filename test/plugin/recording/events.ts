import type { Json, Outcome } from "./messages.ts";

/** What a recorder writes; `at`: nanoseconds of the machine's monotonic clock, the same in all processes. */
export type RecorderEvent = { readonly at: string } & (
  | {
      readonly what: "start";
      readonly args: readonly string[];
      readonly env: Readonly<Record<string, string>>;
    }
  | { readonly what: "call"; readonly call: number; readonly method: string; readonly request: Json }
  | { readonly what: "outcome"; readonly call: number; readonly outcome: Outcome }
);
