import { depthMax, type Item } from './langgraph-items.ts'
import type { Fields } from './long-texts.ts'

export type PathMatch = { matchType: 'prefix' | 'suffix'; path: string[] }

export type Get = { namespace: string[]; key: string }
export type Put = Get & { value: Fields | null; index?: false | string[] | undefined }
export type Search = {
  namespacePrefix: string[]
  filter?: Fields | undefined
  limit?: number
  offset?: number
  query?: string | undefined
}
export type ListNamespaces = {
  matchConditions?: PathMatch[] | undefined
  maxDepth?: number | undefined
  limit: number
  offset: number
}
export type Found = Item & { score?: number }
export type NamespaceOptions = Partial<Pick<ListNamespaces, 'maxDepth' | 'limit' | 'offset'>> & {
  prefix?: PathMatch['path']
  suffix?: PathMatch['path']
}

/** @throws Error where LangGraph refuses a namespace, and for one of more than 10 labels. */
export function assertNamespace(namespace: readonly string[]): void {
  const fault =
    namespace.length === 0 || namespace.length > depthMax
      ? `A namespace has 1 to ${depthMax} labels`
      : namespace.some(label => typeof label !== 'string' || label === '' || /[.:]/.test(label))
        ? 'A label of a namespace is a text without . and :'
        : namespace[0] === 'langgraph'
          ? 'The first label of a namespace cannot be langgraph'
          : undefined
  if (!fault) return
  throw Object.assign(new Error(`${fault}: ${namespace.join('/')}`), {
    name: 'InvalidNamespaceError',
  })
}

const operators: Record<string, (value: unknown, other: unknown) => boolean> = {
  $eq: (value, other) => JSON.stringify(value) === JSON.stringify(other),
  $ne: (value, other) => JSON.stringify(value) !== JSON.stringify(other),
  $gt: (value, other) => Number(value) > Number(other),
  $gte: (value, other) => Number(value) >= Number(other),
  $lt: (value, other) => Number(value) < Number(other),
  $lte: (value, other) => Number(value) <= Number(other),
}

/** Whether each field of a filter is equal, or fulfils its operators. */
export const matchesFilter = (value: Fields, filter: Fields): boolean =>
  Object.entries(filter).every(([name, wanted]: [string, unknown]) => {
    const conditions = Object.entries((wanted ?? {}) as Fields)
    const isOperators =
      typeof wanted === 'object' && conditions.some(([key]) => key.startsWith('$'))
    if (!isOperators) return operators.$eq!(value[name], wanted)
    return conditions.every(([key, other]) => {
      const compare = operators[key]
      if (!compare) throw new Error(`${key} is no operator of a filter`)
      return compare(value[name], other)
    })
  })

export function matchesPath(namespace: readonly string[], { matchType, path }: PathMatch): boolean {
  if (path.length > namespace.length) return false
  const from = matchType === 'prefix' ? 0 : namespace.length - path.length
  return path.every((label, at) => label === '*' || label === namespace[from + at])
}

/** The operation that lists namespaces, from what a program gives. */
export function readListing(options: NamespaceOptions): ListNamespaces {
  const { prefix, suffix, maxDepth, limit = 100, offset = 0 } = options
  const matchConditions: PathMatch[] = [
    ...(prefix ? [{ matchType: 'prefix' as const, path: prefix }] : []),
    ...(suffix ? [{ matchType: 'suffix' as const, path: suffix }] : []),
  ]
  return { matchConditions, maxDepth, limit, offset }
}
