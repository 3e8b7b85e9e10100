import { useState } from 'preact/hooks'
import { vaultClient } from '#api/client/client.ts'
import { toFault, UserError } from '#api/console/app/api-call.ts'
import { currentCredential } from '#api/console/app/credential.ts'
import { formatCount, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { useTags } from '#api/console/app/org/org-queries.ts'
import {
  parseSeedFile,
  toSeedBatches,
  type Seed,
  type SeedFile,
} from '#api/console/app/org/seed-lines.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { dialog } from '#api/console/app/parts/dialogs.ts'
import { labelledControl, onSubmit } from '#api/console/app/parts/fields.ts'
import { faultNote, progressBar } from '#api/console/app/parts/notes.ts'
import { useAction } from '#api/console/app/queries.ts'
import type { OrgTag } from '#api/contract/generated/types.ts'

type Props = { org: string; onClose: () => void; onSeeded: () => void }

type SeedItem = { line: number; seed: Seed }
type LineFault = { line: number; fault: string }

type Outcome = {
  stored: number
  /** Stored by the same request before: nothing was added. */
  again: number
  refused: LineFault[]
  /** Memories of the file whose request has ended. */
  sent: number
}

/** Shares the memories of a file, after a look at what it holds. */
export function SeedFromFile({ org, onClose, onSeeded }: Props): View {
  const [file, setFile] = useState<SeedFile>()
  const [outcome, setOutcome] = useState<Outcome>()
  const { run, isRunning, fault } = useAction()
  const tags = useTags(org).items
  const items = (file?.lines ?? []).flatMap(one => ('seed' in one ? [one] : []))
  const choose = (event: Event): void => {
    const [chosen] = (event.currentTarget as HTMLInputElement).files ?? []
    setFile(undefined)
    setOutcome(undefined)
    if (chosen) void run({ act: async () => setFile(await readSeedFile(chosen)) })
  }
  const send = (round: string) => (): void => {
    const act = (): Promise<void> => sendSeeds(org, items, round, setOutcome)
    void run({ act }).then(onSeeded)
  }
  const isSent = outcome !== undefined && outcome.sent === items.length
  return dialog({
    title: 'Seed from a file',
    wide: true,
    sticky: isRunning,
    onClose,
    children: html`<form class="stack" onSubmit=${onSubmit(send(''))}>
      ${labelledControl(
        'File',
        'JSON (a list), JSON lines, CSV with the columns text and tags, or plain text with a memory on each line. Choose one, or drop it here. Sent again within a day, it adds nothing.',
        described =>
          html`<input
            type="file"
            class="drop"
            accept=".json,.jsonl,.ndjson,.csv,.tsv,.txt,.md"
            disabled=${isRunning}
            ...${described}
            onChange=${choose}
          />`,
      )}
      ${file && !outcome && previewView(file, items, tags)}
      ${outcome && outcomeView(outcome, { items, unit: unitOf(file!) })} ${faultNote(fault)}
      <div class="actions">
        ${outcome && outcome.again > 0 && isSent && button('Add them all the same', send(`-${Date.now()}`), { disabled: isRunning })}
        ${button(isSent ? 'Done' : 'Cancel', onClose, { disabled: isRunning })}
        ${
          items.length > 0 &&
          !isSent &&
          button(
            isRunning
              ? 'Working …'
              : outcome
                ? 'Send the rest'
                : `Share ${pluralize(items.length, 'memory', 'memories')}`,
            undefined,
            { kind: 'main', disabled: isRunning },
          )
        }
      </div>
    </form>`,
  })
}

async function readSeedFile(file: File): Promise<SeedFile> {
  try {
    const decoder = new TextDecoder('utf-8', { fatal: true })
    return parseSeedFile(file.name, decoder.decode(await file.arrayBuffer()))
  } catch {
    throw new UserError('The file cannot be read as UTF-8 text', {
      hint: 'Save it as UTF-8, which spreadsheets call “CSV UTF-8”.',
    })
  }
}

/**
 * Sends the memories, up to 500 with a request.
 *
 * @param round other than before: what was sent before is added again
 * @throws UserError after a request that failed; `onOutcome` has what became of those before it.
 */
async function sendSeeds(
  org: string,
  items: readonly SeedItem[],
  round: string,
  onOutcome: (outcome: Outcome) => void,
): Promise<void> {
  const outcome: Outcome = { stored: 0, again: 0, refused: [], sent: 0 }
  let isReplayed = false
  const client = vaultClient(location.origin, currentCredential()?.key ?? '', {
    fetch: async (...request) => {
      const response = await fetch(...request)
      isReplayed = response.headers.has('idempotent-replayed')
      return response
    },
  })
  onOutcome({ ...outcome })
  for (const batch of toSeedBatches(items)) {
    const seeds = batch.map(({ seed }) => seed)
    const request = {
      params: { orgId: org },
      headers: { 'idempotency-key': `seed-${hashText(JSON.stringify(seeds))}${round}` },
      body: { items: seeds },
    }
    const answer = await client
      .call('POST /v1/orgs/:orgId/memories', request as never)
      .catch((error: unknown) => {
        const { message, hint } = toFault(error)
        const [first, last] = [batch[0]!.line, batch.at(-1)!.line]
        throw new UserError(
          `${formatCount(first)} to ${formatCount(last)} of the file were not shared: ${message}`,
          { hint },
        )
      })
    outcome[isReplayed ? 'again' : 'stored'] += answer.created
    outcome.refused.push(
      ...answer.errors.map(({ index, error }) => ({ line: batch[index]!.line, fault: error })),
    )
    outcome.sent += batch.length
    onOutcome({ ...outcome })
  }
}

/**
 * A name for a text, 64 bits by FNV-1a (RFC 9923) with two starts. Two texts of one name would be a refusal of the
 * service, which compares what was sent.
 */
function hashText(text: string): string {
  const hash = (start: number): string => {
    let sum = start
    for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193)
    return (sum >>> 0).toString(16).padStart(8, '0')
  }
  return `${hash(0x811c9dc5)}${hash(0x050c5d1f)}`
}

/** A memory of a JSON list has a number and no line. */
const unitOf = ({ format }: SeedFile): string => (format === 'json' ? 'Memory' : 'Line')

const samplesMax = 3
const faultsMax = 20

function previewView(file: SeedFile, items: readonly SeedItem[], tags: readonly OrgTag[]): View {
  const faulty = file.lines.flatMap(one => ('fault' in one ? [one] : []))
  const counts = new Map<string, number>()
  for (const tag of items.flatMap(({ seed }) => seed.tags ?? [])) {
    counts.set(tag, (counts.get(tag) ?? 0) + 1)
  }
  const unknown = [...counts].filter(([tag]) => !tags.some(({ label }) => label === tag.trim()))
  return html`<div class="stack-tight">
    <p role="status">
      <b>${pluralize(items.length, 'memory', 'memories')}</b>${
        faulty.length > 0 && `, ${pluralize(faulty.length, 'fault')}: what is faulty is left out`
      }
    </p>
    ${
      counts.size > 0 &&
      html`<p>
        Tags: ${[...counts].map(([tag, count]) => `${tag} (${formatCount(count)})`).join(', ')}
      </p>`
    }
    ${
      unknown.length > 0 &&
      html`<p class="notice">
        No tags of the organization: ${unknown.map(([tag]) => tag).join(', ')}. A member sees
        memories with them where a role names these tags, or allows every tag.
      </p>`
    }
    ${file.ignored.length > 0 && html`<p class="quiet">Not read: ${file.ignored.join(', ')}</p>`}
    <ol class="plain">
      ${items
        .slice(0, samplesMax)
        .map(
          ({ line, seed }) => html`<li key=${line} class="quote">${seed.text.slice(0, 200)}</li>`,
        )}
    </ol>
    ${faultList(faulty, unitOf(file))}
  </div>`
}

const faultList = (faults: readonly LineFault[], unit: string): View | false =>
  faults.length > 0 &&
  html`<ul class="fault stack-tight">
    ${faults.slice(0, faultsMax).map(({ line, fault }) => html`<li key=${line}>${unit} ${formatCount(line)}: ${fault}</li>`)}
    ${faults.length > faultsMax && html`<li>${formatCount(faults.length - faultsMax)} more</li>`}
  </ul>`

const outcomeView = (
  { stored, again, refused, sent }: Outcome,
  { items, unit }: { items: readonly SeedItem[]; unit: string },
): View =>
  html`<div class="stack-tight">
    ${progressBar('Progress', {
      done: sent,
      total: items.length,
      words: `${formatCount(sent)} of ${formatCount(items.length)}`,
    })}
    <p role="status">
      ${`${formatCount(stored)} stored, ${formatCount(refused.length)} refused.`}
      ${again > 0 && ` ${formatCount(again)} were sent in the last 24 hours, and are not added again.`}
    </p>
    ${faultList(refused, unit)}
  </div>`
