import { toEventChainEntry } from '#shared/audit/account-event-chain.ts'
import {
  createChainVerifier,
  type ChainEntry,
  type ChainVerification,
} from '#shared/core/hash-chain.ts'
import { toAuditChainEntry } from '#shared/org/audit-chain.ts'
import type { AccountAction } from '#shared/audit/account-events.postgres.ts'

/** The end of a chain in a file, by whose it is. */
export type ExportAnchor = { position: number; hash: string } & (
  | { org: string }
  | { account: string }
)

export type FileChainResult = ChainVerification & ({ org: string } | { account: string })

export type ExportVerification = {
  /** Null when the file is the whole of what was sent. */
  fault: string | null
  lines: number
  chains: FileChainResult[]
}

type ExportFileLine = { type: string; [field: string]: unknown }

/**
 * Checks an export of an account or an organization: that it ends as one does, with as many lines of
 * each type as it says, and that the events in it form the chains they did. What is remembered is no
 * part of a chain, and not checked.
 *
 * @param lines of the file, without their line breaks
 * @param anchors from earlier checks; those of others than the file tells of are left out
 */
export async function verifyExportFile(
  lines: AsyncIterable<string>,
  anchors: readonly ExportAnchor[] = [],
): Promise<ExportVerification> {
  const chains = createChainVerifiers(anchors)
  const counts: Record<string, number> = {}
  let linesRead = 0
  let end: ExportFileLine | undefined
  for await (const text of lines) {
    if (text === '') continue
    if (end)
      return { fault: 'There is more after its end', lines: linesRead, chains: chains.ended() }
    const line = parseExportLine(text)
    if (!line) {
      const fault = `Line ${linesRead + 1} is not one of an export: it may break off there`
      return { fault, lines: linesRead, chains: chains.ended() }
    }
    if (line.type === 'end') {
      end = line
      continue
    }
    linesRead++
    counts[line.type] = (counts[line.type] ?? 0) + 1
    chains.hear(line)
  }
  return { fault: findFault(end, linesRead, counts), lines: linesRead, chains: chains.ended() }
}

function parseExportLine(text: string): ExportFileLine | undefined {
  try {
    const line = JSON.parse(text) as Partial<ExportFileLine> | null
    return typeof line?.type === 'string' ? { ...line, type: line.type } : undefined
  } catch {
    return undefined
  }
}

function findFault(
  end: ExportFileLine | undefined,
  lines: number,
  counts: Record<string, number>,
): string | null {
  if (!end) return 'It breaks off before its end'
  if (end.lines !== lines) return `It has ${lines} lines of ${String(end.lines)}`
  const declaredCounts = (end.counts ?? {}) as Record<string, number>
  const types = [...new Set([...Object.keys(declaredCounts), ...Object.keys(counts)])]
  const wrong = types.find(type => declaredCounts[type] !== counts[type])
  if (wrong === undefined) return null
  return `It has ${counts[wrong] ?? 0} lines of type ${wrong}, not ${declaredCounts[wrong] ?? 0}`
}

/** The chains of a file, each walked while its lines come by. */
function createChainVerifiers(anchors: readonly ExportAnchor[]) {
  const walks = new Map<
    string,
    { whose: ChainOwner; walk: ReturnType<typeof createChainVerifier> }
  >()
  const walkOf = (whose: ChainOwner) => {
    const name = JSON.stringify(whose)
    const known = walks.get(name)
    if (known) return known.walk
    const ours = anchors.filter(anchor => isSameOwner(anchor, whose))
    const walk = createChainVerifier(ownerId(whose), ours)
    walks.set(name, { whose, walk })
    return walk
  }
  return {
    hear(line: ExportFileLine): void {
      if (line.type === 'organization') walkOf({ org: stringOrEmpty(line.org_id) })
      if (line.type === 'audit_event')
        walkOf({ org: stringOrEmpty(line.org_id) }).verify(parseAuditEntry(line))
      if (line.type === 'account_event') {
        walkOf({ account: stringOrEmpty(line.account_id) }).verify(parseEventEntry(line))
      }
    },
    ended: (): FileChainResult[] =>
      [...walks.values()].map(({ whose, walk }) => ({ ...whose, ...walk.result() })),
  }
}

type ChainOwner = { org: string } | { account: string }

const ownerId = (whose: ChainOwner): string => ('org' in whose ? whose.org : whose.account)

const isSameOwner = (anchor: ChainOwner, whose: ChainOwner): boolean =>
  'org' in anchor === 'org' in whose && ownerId(anchor) === ownerId(whose)

const stringOrEmpty = (value: unknown): string => (typeof value === 'string' ? value : '')

const parseChainFields = (line: ExportFileLine) => ({
  position: Number(line.position),
  hash: Buffer.from(stringOrEmpty(line.hash), 'hex'),
  id: stringOrEmpty(line.event_id),
  action: stringOrEmpty(line.action),
  actor: stringOrEmpty(line.actor),
  micros: stringOrEmpty(line.created_at_us),
})

const parseAuditEntry = (line: ExportFileLine): ChainEntry =>
  toAuditChainEntry({
    ...parseChainFields(line),
    memory: stringOrEmpty(line.mem_id),
    write: stringOrEmpty(line.write_id),
  })

const parseEventEntry = (line: ExportFileLine): ChainEntry => {
  const { action, ...rest } = parseChainFields(line)
  return toEventChainEntry({
    ...rest,
    action: action as AccountAction,
    subject: stringOrEmpty(line.subject),
  })
}
