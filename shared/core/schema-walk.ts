/** A JSON Schema, 2020-12. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/** A schema whose own level has no references and unions. */
export type Branch = {
  types: readonly string[] | undefined
  enum: readonly unknown[] | undefined
  properties: Readonly<Record<string, JsonSchema>>
  required: readonly string[]
  items: JsonSchema | undefined
  isSet: boolean
  isClosed: boolean
  /** Neither unknown fields nor nulls are taken out of it. */
  isStrict: boolean
}

type ClampedField = [name: string, bound: { maximum?: number; maxLength?: number }]

/** Reads the schemas of one document, one level at a time. */
export class SchemaWalk {
  readonly #definitions: Readonly<Record<string, JsonSchema>>
  readonly #branches = new WeakMap<JsonSchema, Branch[]>()
  readonly #clamped = new WeakMap<JsonSchema, ClampedField[]>()

  constructor(document: JsonSchema | undefined) {
    this.#definitions = (document?.$defs ?? {}) as Record<string, JsonSchema>
  }

  /** The members of a union with references followed; for other schemas the schema itself. */
  branches(schema: JsonSchema): Branch[] {
    const known = this.#branches.get(schema)
    if (known) return known
    const members = (schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined
    const target =
      typeof schema.$ref === 'string'
        ? this.#definitions[schema.$ref.split('/').at(-1)!]
        : undefined
    const found = target
      ? this.branches(target)
      : (members?.flatMap(member => this.branches(member)) ?? [toBranch(schema)])
    this.#branches.set(schema, found)
    return found
  }

  properties(schema: JsonSchema): Readonly<Record<string, JsonSchema>> {
    return Object.assign({}, ...this.branches(schema).map(({ properties }) => properties)) as never
  }

  /** The fields with a bound that larger values are brought down to. */
  clamped(schema: JsonSchema): ClampedField[] {
    const known = this.#clamped.get(schema)
    if (known) return known
    const fields = Object.entries(this.properties(schema))
    const found = fields.filter(([, property]) => property['x-clamped'] === true)
    this.#clamped.set(schema, found)
    return found
  }

  /** Whether an object of a schema may have only the fields that it lists. */
  isClosed(schema: JsonSchema): boolean {
    return this.branches(schema).every(({ isClosed }) => isClosed)
  }

  /** Whether values of a schema may have a type. */
  allows(schema: JsonSchema, type: string): boolean {
    return this.branches(schema).some(branch => branch.types?.includes(type) ?? !branch.enum)
  }

  /**
   * Removes optional fields that are null from a value, in place and at every level, where their schema has no null:
   * clients in typed languages send null for an absent field.
   */
  removeAbsent(schema: JsonSchema, value: unknown): void {
    if (typeof value !== 'object' || value === null) return
    const branches = this.branches(schema)
    if (Array.isArray(value)) {
      for (const { items } of branches)
        if (items) for (const item of value) this.removeAbsent(items, item)
      return
    }
    const fields = value as Record<string, unknown>
    for (const { properties, isStrict } of branches) {
      if (isStrict) continue
      for (const name of Object.keys(properties)) {
        if (!Object.hasOwn(fields, name)) continue
        if (fields[name] !== null) this.removeAbsent(properties[name]!, fields[name])
        else if (branches.every(branch => this.#isAbsent(branch, name))) delete fields[name]
      }
    }
  }

  /** Whether null in a field means that the field is absent. */
  #isAbsent({ properties, required }: Branch, name: string): boolean {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined
    return !required.includes(name) && !(property && this.allows(property, 'null'))
  }
}

function toBranch(schema: JsonSchema): Branch {
  const { type, properties, required, items, additionalProperties } = schema
  return {
    types: type === undefined ? undefined : ([type].flat() as string[]),
    enum: schema.enum as unknown[] | undefined,
    properties: (properties ?? {}) as Record<string, JsonSchema>,
    required: (required ?? []) as string[],
    items: items as JsonSchema | undefined,
    isSet: schema.uniqueItems === true,
    isClosed: additionalProperties === false,
    isStrict: schema['x-strict'] === true,
  }
}
