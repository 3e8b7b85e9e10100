import { eventLinkOf } from '#shared/audit/account-event-chain.ts'
import { beginWalk, type Link, type WalkedChain } from '#shared/core/hash-chain.ts'
import { auditLinkOf } from '#shared/org/audit-chain.ts'
import type { AccountAction } from '#shared/audit/account-events.postgres.ts'

/** The end of a chain in a file, by whose it is. */
export type FileAnchor = { position: number; hash: string } & (
  | { org: string }
  | { account: string }
)

export type FileChain = WalkedChain & ({ org: string } | { account: string })

export type CheckedFile = {
  /** Null when the file is the whole of what was sent. */
  fault: string | null
  lines: number
  chains: FileChain[]
}

type Line = { type: string; [field: string]: unknown }

/**
 * Checks an export of an account or an organization: that it ends as one does, with as many lines of
 * each type as it says, and that the events in it form the chains they did. What is remembered is no
 * part of a chain, and not checked.
 *
 * @param lines of the file, without their line breaks
 * @param anchors from earlier checks; those of others than the file tells of are left out
 */
export async function checkExportedFile(
  lines: AsyncIterable<string>,
  anchors: readonly FileAnchor[] = [],
): Promise<CheckedFile> {
  const chains = createChains(anchors)
  const counts: Record<string, number> = {}
  let before = 0
  let end: Line | undefined
  for await (const text of lines) {
    if (text === '') continue
    if (end) return { fault: 'There is more after its end', lines: before, chains: chains.ended() }
    const line = lineIn(text)
    if (!line) {
      const fault = `Line ${before + 1} is not one of an export: it may break off there`
      return { fault, lines: before, chains: chains.ended() }
    }
    if (line.type === 'end') {
      end = line
      continue
    }
    before++
    counts[line.type] = (counts[line.type] ?? 0) + 1
    chains.hear(line)
  }
  return { fault: faultOf(end, before, counts), lines: before, chains: chains.ended() }
}

function lineIn(text: string): Line | undefined {
  try {
    const line = JSON.parse(text) as Partial<Line> | null
    return typeof line?.type === 'string' ? { ...line, type: line.type } : undefined
  } catch {
    return undefined
  }
}

function faultOf(
  end: Line | undefined,
  lines: number,
  counts: Record<string, number>,
): string | null {
  if (!end) return 'It breaks off before its end'
  if (end.lines !== lines) return `It has ${lines} lines of ${String(end.lines)}`
  const told = (end.counts ?? {}) as Record<string, number>
  const types = [...new Set([...Object.keys(told), ...Object.keys(counts)])]
  const wrong = types.find(type => told[type] !== counts[type])
  if (wrong === undefined) return null
  return `It has ${counts[wrong] ?? 0} lines of type ${wrong}, not ${told[wrong] ?? 0}`
}

/** The chains of a file, each walked while its lines come by. */
function createChains(anchors: readonly FileAnchor[]) {
  const walks = new Map<string, { whose: Whose; walk: ReturnType<typeof beginWalk> }>()
  const walkOf = (whose: Whose) => {
    const name = JSON.stringify(whose)
    const known = walks.get(name)
    if (known) return known.walk
    const ours = anchors.filter(anchor => sameOwner(anchor, whose))
    const walk = beginWalk(idOf(whose), ours)
    walks.set(name, { whose, walk })
    return walk
  }
  return {
    hear(line: Line): void {
      if (line.type === 'organization') walkOf({ org: textOf(line.org_id) })
      if (line.type === 'audit_event') walkOf({ org: textOf(line.org_id) }).take(auditLink(line))
      if (line.type === 'account_event') {
        walkOf({ account: textOf(line.account_id) }).take(eventLink(line))
      }
    },
    ended: (): FileChain[] =>
      [...walks.values()].map(({ whose, walk }) => ({ ...whose, ...walk.end() })),
  }
}

type Whose = { org: string } | { account: string }

const idOf = (whose: Whose): string => ('org' in whose ? whose.org : whose.account)

const sameOwner = (anchor: Whose, whose: Whose): boolean =>
  'org' in anchor === 'org' in whose && idOf(anchor) === idOf(whose)

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

const chained = (line: Line) => ({
  position: Number(line.position),
  hash: Buffer.from(textOf(line.hash), 'hex'),
  id: textOf(line.event_id),
  action: textOf(line.action),
  actor: textOf(line.actor),
  micros: textOf(line.created_at_us),
})

const auditLink = (line: Line): Link =>
  auditLinkOf({ ...chained(line), memory: textOf(line.mem_id), write: textOf(line.write_id) })

const eventLink = (line: Line): Link => {
  const { action, ...rest } = chained(line)
  return eventLinkOf({ ...rest, action: action as AccountAction, subject: textOf(line.subject) })
}
