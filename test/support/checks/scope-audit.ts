/** A command from the command monitoring of the MongoDB driver. */
export type MongoCommand = Record<string, unknown>

/** Commands without documents of a vault: schema, indexes, sessions, and cursors of audited commands. */
const unscopedCommands = new Set(
  (
    'hello ismaster ping buildInfo endSessions getMore killCursors create drop dropDatabase collMod ' +
    'listCollections listIndexes createIndexes dropIndexes ' +
    'createSearchIndexes updateSearchIndex dropSearchIndex'
  ).split(' '),
)

/**
 * Checks a command against the scope rule: reads, updates and deletes of memories have an equality on
 * `vault`, inserts have a vault in every document.
 *
 * @returns the violation, without values of the command; null when there is none.
 */
export function findScopeViolation(name: string, command: MongoCommand): string | null {
  const judge = commandChecks[name]
  if (judge) {
    const fault = judge(command)
    return fault && `${name}: ${fault}`
  }
  return unscopedCommands.has(name) ? null : `${name}: a command the audit does not know`
}

const commandChecks: Record<string, (command: MongoCommand) => string | null> = {
  find: ({ filter }) => faultOfFilter(filter),
  count: ({ query }) => faultOfFilter(query),
  distinct: ({ query }) => faultOfFilter(query),
  findAndModify: ({ query, update }) => faultOfFilter(query) ?? faultOfChange(update),
  aggregate: ({ pipeline }) => faultOfPipeline(pipeline),
  insert: ({ documents }) => first(documents, document => faultOfDocument(document)),
  update: ({ updates }) =>
    first(updates, ({ q, u }: MongoCommand) => faultOfFilter(q) ?? faultOfChange(u)),
  delete: ({ deletes }) => first(deletes, ({ q }: MongoCommand) => faultOfFilter(q)),
}

function first(list: unknown, judge: (item: MongoCommand) => string | null): string | null {
  if (!Array.isArray(list) || list.length === 0) return 'nothing to judge'
  for (const item of list as MongoCommand[]) {
    const fault = judge(item)
    if (fault) return fault
  }
  return null
}

const faultOfFilter = (filter: unknown): string | null =>
  hasVault(filter) ? null : 'the filter has no equality on vault'

/** Whether a filter has `vault` at the top or in a term of `$and`; a term of `$or` is not enough. */
function hasVault(filter: unknown): boolean {
  if (typeof filter !== 'object' || filter === null) return false
  const { vault, $and } = filter as { vault?: unknown; $and?: unknown }
  return isVault(vault) || (Array.isArray($and) && $and.some(hasVault))
}

function isVault(value: unknown): boolean {
  if (typeof value === 'string') return value !== ''
  if (typeof value !== 'object' || value === null) return false
  const { $eq } = value as { $eq?: unknown }
  return typeof $eq === 'string' && $eq !== ''
}

const faultOfDocument = ({ vault }: MongoCommand): string | null =>
  typeof vault === 'string' && vault !== '' ? null : 'a document has no vault'

/** An update must not move a document to another vault. */
function faultOfChange(change: unknown): string | null {
  const stages = Array.isArray(change) ? (change as MongoCommand[]) : [change as MongoCommand]
  for (const stage of stages) {
    for (const [operator, fields] of Object.entries(stage ?? {})) {
      if (!operator.startsWith('$')) return 'a document is replaced'
      if (operator === '$setOnInsert') continue
      if (Object.keys(fields as MongoCommand).includes('vault'))
        return `${operator} changes the vault`
    }
  }
  return null
}

/** Stages that read other documents, or write. */
const foreign = new Set(['$lookup', '$graphLookup', '$unionWith', '$facet', '$out', '$merge'])

function faultOfPipeline(pipeline: unknown): string | null {
  const stages = pipeline as MongoCommand[]
  const [head = {}] = stages
  if ('$listSearchIndexes' in head) return null
  const stray = stages.flatMap(stage => Object.keys(stage)).find(name => foreign.has(name))
  if (stray) return `${stray} may leave the vault`
  const search = head['$vectorSearch'] as { filter?: unknown } | undefined
  return faultOfFilter(search ? search.filter : head['$match'])
}
