/**
 * What a module's exports can be before the module is loaded: `load` is called when they are first looked at. Anything
 * but a comparison by identity sees no difference.
 * @param part what an export is until then, where reading one is not to load the module
 */
export function standIn(load: () => object, part?: (key: string) => object): object {
  let loaded: object | undefined;
  const real = (): object => {
    loaded ??= load();
    return loaded;
  };
  // A bound function can be called and made with `new`, and has no property that a proxy would have to show.
  const target = Object.bind(undefined);
  return new Proxy(target, {
    // Compiled imports ask for this mark at once, and copy all properties of what lacks it.
    get(_target, key) {
      if (key === "__esModule" && !loaded) return true;
      return part && !loaded && typeof key === "string" ? part(key) : Reflect.get(real(), key);
    },
    set: (_target, key, value) => Reflect.set(real(), key, value),
    has: (_target, key) => Reflect.has(real(), key),
    deleteProperty: (_target, key) => Reflect.deleteProperty(real(), key),
    ownKeys: () => Reflect.ownKeys(real()),
    getOwnPropertyDescriptor(_target, key) {
      const found = Reflect.getOwnPropertyDescriptor(real(), key);
      // A proxy may say of no property that it stays, unless its target has it.
      return found && { ...found, configurable: true };
    },
    defineProperty: (_target, key, descriptor) => Reflect.defineProperty(real(), key, descriptor),
    getPrototypeOf: () => Reflect.getPrototypeOf(real()),
    apply: (_target, self, args) => Reflect.apply(real() as never, self, args),
    construct: (_target, args, made) => Reflect.construct(real() as never, args, made),
  });
}

/**
 * The same for exports that are taken apart at once: each is a stand-in of its own. All of them are functions, classes
 * or objects.
 */
export function standInOfEach(load: () => object): object {
  let loaded: Record<string, object> | undefined;
  const real = (): Record<string, object> => {
    loaded ??= load() as Record<string, object>;
    return loaded;
  };
  return standIn(real, (key) => standIn(() => real()[key] as object));
}
