/** An object that was there before the resource that has it now. */
export interface Adopted {
  /** The resource's class. */
  readonly type: string;
  /** The resource's name in the program. */
  readonly name: string;
  /** The object's id. */
  readonly id: string;
}

/** What a provider prints of it: the engines show it as a message, and count the object as adopted, not as created. */
export function adoptionNotice({ type, name, id }: Adopted): string {
  return `${type} "${name}": took over ${id}, which was there already`;
}

/** What a message of {@link adoptionNotice} is about; undefined for any other message. */
export function readAdoptionNotice(message: string): Adopted | undefined {
  const [, type, name, id] = /^(\w+) "(.*)": took over (.+), which was there already$/.exec(message) ?? [];
  return type !== undefined && name !== undefined && id !== undefined ? { type, name, id } : undefined;
}
