/** What the program in `endToEnd/fixtures/commonjs` declares: classes and arguments, by the resources' names. */
export type Policy = Record<
  string,
  {
    type: string;
    args: Record<string, unknown>;
    options?: { import?: string; retainOnDelete?: boolean; ignoreChanges?: string[] };
  }
>;

/** How it is told that. */
export const policyEnv = (policy: Policy) => ({ POLICY: JSON.stringify(policy) });
