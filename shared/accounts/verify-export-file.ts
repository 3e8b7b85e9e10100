import { toEventChainEntry } from '#shared/events/account-event-chain.ts'
import { ChainVerifier, type ChainEntry, type ChainVerification } from '#shared/core/hash-chain.ts'
import { toAuditChainEntry } from '#shared/org/trail/audit-chain.postgres.ts'
import type { AccountAction } from '#shared/events/account-events.postgres.ts'

/** The end of a chain as an earlier check found it. */
export type ExportAnchor = { position: number; hash: string } & (
  | { org: string }
  | { account: string }
)

export type FileChainResult = ChainVerification & ({ org: string } | { account: string })

type ExportFileLine = { type: string; [field: string]: unknown }

/**
 * Checks an export of an account or an organization: that it has its end line, as many lines of each type
 * as that line counts, and unbroken chains of events. Memories and traces are in no chain: they are
 * counted, not checked.
 *
 * @param lines of the file, without their line breaks
 * @param anchors from earlier checks; of chains that are not in the file are ignored
 */
export async function verifyExportFile(
  lines: AsyncIterable<string>,
  anchors: readonly ExportAnchor[] = [],
): Promise<{
  /** Null when the file is complete. */
  fault: string | null
  lines: number
  chains: FileChainResult[]
}> {
  const chains = createChainVerifiers(anchors)
  const counts: Record<string, number> = {}
  let linesRead = 0
  let end: ExportFileLine | undefined
  for await (const text of lines) {
    if (text === '') continue
    if (end)
      return { fault: 'There is more after its end', lines: linesRead, chains: chains.results() }
    const line = parseExportLine(text)
    if (!line) {
      const fault = `Line ${linesRead + 1} is not one of an export: it may break off there`
      return { fault, lines: linesRead, chains: chains.results() }
    }
    if (line.type === 'end') {
      end = line
      continue
    }
    linesRead++
    counts[line.type] = (counts[line.type] ?? 0) + 1
    chains.add(line)
  }
  return { fault: findFault(end, linesRead, counts), lines: linesRead, chains: chains.results() }
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

/** Verifies the chains of a file line by line. */
function createChainVerifiers(anchors: readonly ExportAnchor[]) {
  const verifiers = new Map<string, { owner: ChainOwner; verifier: ChainVerifier }>()
  const verifierOf = (owner: ChainOwner) => {
    const name = JSON.stringify(owner)
    const known = verifiers.get(name)
    if (known) return known.verifier
    const ownAnchors = anchors.filter(anchor => isSameOwner(anchor, owner))
    const verifier = new ChainVerifier(ownerId(owner), ownAnchors)
    verifiers.set(name, { owner, verifier })
    return verifier
  }
  return {
    add(line: ExportFileLine): void {
      if (line.type === 'organization') verifierOf({ org: stringOrEmpty(line.org_id) })
      if (line.type === 'audit_event')
        verifierOf({ org: stringOrEmpty(line.org_id) }).verify(parseAuditEntry(line))
      if (line.type === 'account_event') {
        verifierOf({ account: stringOrEmpty(line.account_id) }).verify(parseEventEntry(line))
      }
    },
    results: (): FileChainResult[] =>
      [...verifiers.values()].map(({ owner, verifier }) => ({ ...owner, ...verifier.result() })),
  }
}

type ChainOwner = { org: string } | { account: string }

const ownerId = (owner: ChainOwner): string => ('org' in owner ? owner.org : owner.account)

const isSameOwner = (anchor: ChainOwner, owner: ChainOwner): boolean =>
  'org' in anchor === 'org' in owner && ownerId(anchor) === ownerId(owner)

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
    change: 'after' in line ? JSON.stringify(toChange(line)) : null,
  })
}

const toChange = ({ before, after, org_id: organization }: ExportFileLine): unknown[] =>
  organization === undefined ? [before, after] : [before, after, organization]
