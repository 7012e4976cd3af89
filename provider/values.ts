/** Values by their name, such as the inputs and outputs of a resource. The types of the values are not checked yet. */
export type Values = Readonly<Record<string, unknown>>;
