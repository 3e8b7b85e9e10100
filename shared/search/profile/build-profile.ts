import { runAtOnce, sortInSteps, type Steps } from '#shared/core/event-loop.ts'
import type { ProfileKind } from '#shared/domain/profile-kinds.ts'
import type { Fact, Statement } from '#shared/search/profile/find-statements.ts'
import { profileKinds } from '#shared/domain/profile-kinds.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'

/** A statement and the memory that it stands in. */
export type SourcedStatement = Statement & {
  memory: string
  /** Time of the memory, epoch milliseconds. */
  at: number
  /** Place in its memory. */
  position: number
  /** The speaker, where several people talk in a vault; only their own statements replace it. */
  speaker?: string
  /** Epoch milliseconds from which on its memory is gone. */
  expiresAt?: number
}

export type ProfileEntry = Pick<
  SourcedStatement,
  'kind' | 'quote' | 'memory' | 'position' | 'speaker'
> & {
  /** Time of the first such statement, epoch milliseconds. */
  since: number
  /** Time of the statement that replaced all of it; null while something of it holds. */
  until: number | null
  /** The memory of that statement. */
  replacedBy: string | null
}

/**
 * Builds a profile of statements: by kind, then newest first. The first of equal statements stays, so that repeating it
 * changes nothing. Equal statements give equal entries: there is no clock in it.
 */
export const buildProfile = (statements: readonly SourcedStatement[]): readonly ProfileEntry[] =>
  runAtOnce(buildProfileInSteps(statements))

/** Does the same in steps. */
export function* buildProfileInSteps(
  statements: readonly SourcedStatement[],
): Steps<readonly ProfileEntry[]> {
  const entries: ProfileEntry[] = []
  const holding = new Map<string, CurrentFact>()
  const said = new Set<string>()
  for (const statement of yield* sortInSteps(statements, inOrder)) {
    yield
    for (const fact of statement.ends) endFact(holding, statement, fact)
    const news = statement.facts.filter(
      fact => holding.get(keyOf(statement, fact))?.value !== fact.value,
    )
    const text = `${keyOf(statement, statement)}${foldText(statement.quote)}`
    const isRepeated = statement.facts.length > 0 ? news.length === 0 : said.has(text)
    if (isRepeated) continue
    said.add(text)
    const source = { entry: toEntry(statement), open: 0 }
    entries.push(source.entry)
    for (const fact of news) replaceFact(holding, statement, fact, source)
  }
  return yield* sortInSteps(entries, inKindOrder)
}

const inKindOrder = (one: ProfileEntry, other: ProfileEntry): number =>
  kindOrder.get(one.kind)! - kindOrder.get(other.kind)! || -inOrder(toPlace(one), toPlace(other))

/** An entry with the number of its facts that hold. */
type OpenEntry = { entry: ProfileEntry; open: number }

type CurrentFact = { value: string; source: OpenEntry }

const toEntry = (statement: SourcedStatement): ProfileEntry => ({
  kind: statement.kind,
  quote: statement.quote,
  memory: statement.memory,
  position: statement.position,
  ...(statement.speaker !== undefined && { speaker: statement.speaker }),
  since: statement.at,
  until: null,
  replacedBy: null,
})

function replaceFact(
  holding: Map<string, CurrentFact>,
  statement: SourcedStatement,
  fact: Fact,
  source: OpenEntry,
): void {
  const key = keyOf(statement, fact)
  const before = holding.get(key)
  source.open++
  holding.set(key, { value: fact.value, source })
  if (before && before.source !== source) closeFact(before.source, statement)
}

function endFact(holding: Map<string, CurrentFact>, statement: SourcedStatement, fact: Fact): void {
  const key = keyOf(statement, fact)
  const before = holding.get(key)
  if (!before || (fact.value !== '' && before.value !== fact.value)) return
  holding.delete(key)
  closeFact(before.source, statement)
}

function closeFact(source: OpenEntry, { at, memory }: SourcedStatement): void {
  source.open--
  if (source.open > 0) return
  source.entry.until = at
  source.entry.replacedBy = memory
}

const keyOf = (
  { speaker = '' }: Pick<SourcedStatement, 'speaker'>,
  { kind, subject = '' }: { kind: ProfileKind; subject?: string },
): string => JSON.stringify([speaker, kind, subject])

const kindOrder: ReadonlyMap<ProfileKind, number> = new Map(
  profileKinds.map((kind, index) => [kind, index]),
)

type Place = Pick<SourcedStatement, 'at' | 'memory' | 'position'>

const toPlace = ({ since, memory, position }: ProfileEntry): Place => ({
  at: since,
  memory,
  position,
})

/** Orders by time, then by id and place: as in the conversation. */
const inOrder = (one: Place, other: Place): number =>
  one.at - other.at ||
  (one.memory < other.memory ? -1 : one.memory > other.memory ? 1 : one.position - other.position)
