import type { Planned } from '#shared/domain/file-lines.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import {
  standingsOf,
  type RestoredMemory,
  type Standing,
} from '#shared/vault/bulk/memories.mongo.ts'
import { sessionEpochsOf } from '#shared/vault/base/vault-lock.postgres.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** The ids a memory may take, in the order they are tried. */
export type Candidates = {
  idAt(generation: number): string
  /** From this generation on ids are only ever of this vault: one it has nothing under is free. */
  ownFrom: 0 | 1
  /** The vault, or an earlier line, has the same already under whatever id. */
  present: boolean
}

/** A memory that a line is to become, all but its id. */
export type Item = Candidates & {
  memory: Omit<RestoredMemory, 'id' | 'vector'>
  vector?: Float32Array
}

type Asking = Stores
type Scope = Pick<VaultScope, 'vault' | 'epoch'>

/**
 * Decides what becomes of each item: a memory that is there is skipped or replaced, the id of one that
 * was deleted is passed over.
 */
export async function planOf(
  backend: Asking,
  scope: Scope,
  items: readonly Candidates[],
  { replaces }: { replaces: boolean },
): Promise<Planned[]> {
  const plan = items.map(({ present, idAt }): Planned | null =>
    present ? { id: idAt(0), as: 'skip' } : null,
  )
  /** Ids that are not in this vault but may be in another: to be tried first. */
  const perhaps = new Map<number, string>()
  for (let generation = 0; plan.includes(null); generation++) {
    const open = items.flatMap(({ idAt, ownFrom }, index) =>
      plan[index] === null ? [{ index, id: idAt(generation), own: generation >= ownFrom }] : [],
    )
    const standings = await livingStandings(backend, scope, idsOf(open))
    for (const { index, id, own } of open) {
      const standing = standings.get(id)
      if (standing?.living) plan[index] = metBy(id, standing, replaces)
      else if (!standing && own) plan[index] = freeOf(id, perhaps.get(index))
      else if (!standing) perhaps.set(index, id)
    }
  }
  return plan.filter(planned => planned !== null)
}

/**
 * Under which id each of these imported memories lives in the vault now; those it does not have are
 * left out.
 */
export async function livingIds(
  backend: Asking,
  scope: Scope,
  ids: readonly string[],
  idAt: (id: string, generation: number) => string,
): Promise<Map<string, string>> {
  const living = new Map<string, string>()
  let open = [...new Set(ids)]
  for (let generation = 0; open.length > 0; generation++) {
    const tried = open.map(id => ({ asked: id, id: idAt(id, generation) }))
    const standings = await livingStandings(backend, scope, idsOf(tried))
    open = []
    for (const { asked, id } of tried) {
      const standing = standings.get(id)
      if (standing?.living) living.set(asked, id)
      // What has left a trace, or may be another vault's under its first id, may have gone on.
      else if (standing || generation === 0) open.push(asked)
    }
  }
  return living
}

/** What stands under these ids; a memory of a session that was cleared since does not live. */
export async function livingStandings(
  { mongo, postgres }: Asking,
  scope: Scope,
  ids: readonly string[],
): Promise<Map<string, Standing>> {
  const standings = await standingsOf(mongo, scope, ids)
  const sessions = [...new Set([...standings.values()].map(({ session }) => session))].filter(
    Boolean,
  )
  const epochs = await sessionEpochsOf(postgres.query, scope, sessions)
  for (const standing of standings.values()) {
    const epoch = epochs.get(standing.session) ?? 0
    if (standing.session_epoch !== epoch) standing.living = false
  }
  return standings
}

/** What a memory adds to the debt: only the core vault, and only what no reflection covers. */
export function debtShare(memory: {
  session: string | null
  tier: number
  tokens: number
  importance?: number | undefined
  consolidated: boolean
}): DebtChange {
  const { session, tier, tokens, importance = 0, consolidated } = memory
  if (session !== null || consolidated || tier === 3) return {}
  if (tier === 1) return { rawUnits: 1, rawTokens: tokens }
  return { tier2Count: 1, tier2Importance: importance, tier2Tokens: tokens }
}

function metBy(id: string, standing: Standing, replaces: boolean): Planned {
  if (!replaces) return { id, as: 'skip' }
  const session = standing.session || null
  return { id, as: 'replace', was: { session, debt: debtShare({ ...standing, session }) } }
}

const freeOf = (id: string, perhaps: string | undefined): Planned =>
  perhaps === undefined ? { id, as: 'new' } : { id: perhaps, as: 'new', next: id }

const idsOf = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id)

/** An item and what is to become of it. */
export type Decided = Item & { planned: Planned }
