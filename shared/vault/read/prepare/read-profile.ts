import type { Caller } from '#shared/access/caller.ts'
import { mergeInSteps, runInSlices, type Steps } from '#shared/core/event-loop.ts'
import { readPage, type CursorCodec, type Page } from '#shared/core/page.ts'
import { toSharedVaultScope } from '#shared/domain/member-scope.ts'
import { visibilityOf } from '#shared/domain/visibility.ts'
import { buildProfileInSteps, type ProfileEntry } from '#shared/search/profile/build-profile.ts'
import { profileKinds, type ProfileKind } from '#shared/domain/profile-kinds.ts'
import type {
  ProfileCache,
  ProfileRef,
  ProfileStatements,
  StoredStatement,
} from '#shared/vault/read/prepare/profile-cache.ts'

export type ProfileRow = ProfileEntry &
  Pick<StoredStatement, 'tags' | 'author'> & { source: 'core' | 'session' | 'org' }

/** Kind, source, time, memory and place of the last row of a page. */
type ProfilePosition = [kind: number, source: number, since: number, memory: string, place: number]

/**
 * One page of what a person has said of themselves, and for a member also what they may see of the shared
 * memory. Every row is a sentence of a memory. Rows are ordered by kind, the caller's own first, newest first.
 *
 * @throws Refusal `invalid` for a cursor of another profile, `unavailable`.
 */
export async function readProfile(
  { profiles, cursors, now }: { profiles: ProfileCache; cursors: CursorCodec; now: () => number },
  { scope, memberScope }: Pick<Caller, 'scope' | 'memberScope'>,
  question: {
    /** The session to read; null is the core vault. */
    session: string | null
    /** Only these; all, when undefined. */
    kinds: readonly ProfileKind[] | undefined
    /** Leave out what was replaced. */
    current: boolean
    /** Epoch ms: later statements are unknown. */
    asOf: number | undefined
    limit: number
    cursor: string | undefined
  },
): Promise<Page<ProfileRow>> {
  const { session, kinds, current, asOf = null, limit, cursor } = question
  const own: ProfileRef = { scope, session }
  const shared: ProfileRef[] = memberScope
    ? [
        {
          scope: toSharedVaultScope(memberScope),
          session: null,
          audience: visibilityOf(memberScope),
        },
      ]
    : []
  const statements = await Promise.all([own, ...shared].map(ref => profiles.get(ref)))
  const at = now()
  const [first = [], second = []] = await Promise.all(
    statements.map((known, part) =>
      profileRows(known, { part, session, asOf: question.asOf, now: at }),
    ),
  )
  const rows = (await runInSlices(mergeInSteps(first, second, compareRows))).filter(
    ({ kind, until }) => (!kinds || kinds.includes(kind)) && !(current && until !== null),
  )
  const bound = ['profile', scope.vault, scope.epoch, session, kinds ?? null, current, asOf]
  return readPage(
    cursors,
    { limit, cursor, bound },
    async (after: ProfilePosition | undefined, count) => {
      const first = after ? rows.findIndex(row => comparePositions(positionOf(row), after) > 0) : 0
      return first < 0 ? [] : rows.slice(first, first + count)
    },
    positionOf,
  )
}

type BuiltRows = { live: string; rows: Promise<readonly ProfileRow[]> }

/** The rows of some statements that were asked for last, for each set of them: built once for each change. */
const builtRows = new WeakMap<readonly StoredStatement[], BuiltRows[]>()
/** For now, and for one moment of the past. */
const builtRowsMax = 2

function profileRows(
  statements: ProfileStatements,
  {
    part,
    session,
    asOf = Infinity,
    now,
  }: { part: number; session: string | null; asOf: number | undefined; now: number },
): Promise<readonly ProfileRow[]> {
  const { all } = statements
  const isKnown = ({ at }: StoredStatement): boolean => at <= asOf
  const isOver = ({ expiresAt = Infinity }: StoredStatement): boolean => expiresAt <= now
  // Statements are known, and over, in the order of their times: equal numbers are equal sets.
  const live = `${part} ${session} ${count(all, isKnown)} ${count(all, isOver)}`
  const built = builtRows.get(all)?.find(one => one.live === live)
  if (built) return built.rows
  const chosen = all.filter(one => isKnown(one) && !isOver(one))
  const source = part > 0 ? 'org' : session === null ? 'core' : 'session'
  const rows = runInSlices(buildRows(statements, chosen, source))
  builtRows.set(all, [{ live, rows }, ...(builtRows.get(all) ?? [])].slice(0, builtRowsMax))
  return rows
}

const count = (all: readonly StoredStatement[], isOne: (one: StoredStatement) => boolean): number =>
  all.reduce((sum, one) => sum + (isOne(one) ? 1 : 0), 0)

function* buildRows(
  { byId }: ProfileStatements,
  chosen: readonly StoredStatement[],
  source: ProfileRow['source'],
): Steps<readonly ProfileRow[]> {
  const rows: ProfileRow[] = []
  for (const entry of yield* buildProfileInSteps(chosen)) {
    const { tags, author } = byId.get(entry.memory)![0]!
    rows.push({ ...entry, source, ...(tags && { tags }), ...(author !== undefined && { author }) })
    yield
  }
  return rows
}

const sources: readonly ProfileRow['source'][] = ['core', 'session', 'org']

const positionOf = ({ kind, source, since, memory, position }: ProfileRow): ProfilePosition => [
  profileKinds.indexOf(kind),
  sources.indexOf(source),
  since,
  memory,
  position,
]

const compareRows = (one: ProfileRow, other: ProfileRow): number =>
  comparePositions(positionOf(one), positionOf(other))

/** By kind and source, then from the newest on. */
function comparePositions(one: ProfilePosition, other: ProfilePosition): number {
  const [kind, source, since, memory, place] = one
  const [otherKind, otherSource, otherSince, otherMemory, otherPlace] = other
  const byId = memory < otherMemory ? 1 : memory > otherMemory ? -1 : otherPlace - place
  return kind - otherKind || source - otherSource || otherSince - since || byId
}
