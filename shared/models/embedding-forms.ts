import { createHash } from 'node:crypto'
import rows from '#shared/models/embedding-families.json' with { type: 'json' }

/** Marks a text as a query or as a passage for a model: a prefix, and fields of its call. */
export type InputForm = { prefix?: string; fields?: Readonly<Record<string, string>> }

export type EmbeddingForms = { query: InputForm; passage: InputForm }

/** Prefixes of the operator; '' switches a form off, undefined leaves the model's own. */
export type SetPrefixes = { query?: string | undefined; passage?: string | undefined }

/** By the makers' own pages; a model of no family is sent texts as they are. */
const families: readonly {
  /** Part of the model's name, in lower case; the first family that matches is the model's. */
  name: RegExp
  query?: string
  passage?: string
  /** A field of the call in place of prefixes. */
  field?: { name: string; query: string; passage: string }
}[] = rows.map(row => ({ ...row, name: new RegExp(row.name) }))

/** The forms of a model, by its name without the provider. */
export function formsOfModel(name: string, set: SetPrefixes = {}): EmbeddingForms {
  const family = families.find(one => one.name.test(name.toLowerCase()))
  const formOf = (kind: 'query' | 'passage'): InputForm => {
    const prefix = set[kind] ?? family?.[kind]
    if (prefix) return { prefix }
    const { field } = family ?? {}
    return field && set[kind] === undefined ? { fields: { [field.name]: field[kind] } } : {}
  }
  return { query: formOf('query'), passage: formOf('passage') }
}

/** Without the fields of a call, for a server that refuses unknown ones. */
export const withoutFields = ({ query, passage }: EmbeddingForms): EmbeddingForms => ({
  query: query.prefix ? { prefix: query.prefix } : {},
  passage: passage.prefix ? { prefix: passage.prefix } : {},
})

/** Identifies forms in the name of a vault space; '' for none. `_p` begins no escaped character of a model's name. */
export function formsMark({ query, passage }: EmbeddingForms): string {
  const given = [query, passage].map(({ prefix = '', fields = {} }) => [prefix, fields])
  if (given.every(([prefix, fields]) => prefix === '' && Object.keys(fields!).length === 0))
    return ''
  return `_p${createHash('sha256').update(JSON.stringify(given)).digest('hex').slice(0, 8)}`
}
