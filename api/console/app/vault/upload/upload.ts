import { useState } from 'preact/hooks'
import { hrefTo } from '#api/console/app/address.ts'
import { toFault, UserError } from '#api/console/app/api-call.ts'
import { formatCount, formatPercent, pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button, buttonLink } from '#api/console/app/parts/buttons.ts'
import { labelledControl, onSubmit, selectField, textField } from '#api/console/app/parts/fields.ts'
import { faultNote, progressBar } from '#api/console/app/parts/notes.ts'
import type { Fault } from '#api/console/app/api-call.ts'
import { readFiles, readings, type FoundLines } from '#api/console/app/vault/upload/read-files.ts'
import {
  forgetSending,
  startSending,
  useSending,
  type Sending,
} from '#api/console/app/vault/upload/sending.ts'
import { formats } from '#api/import/formats.ts'
import { Refusal } from '#shared/core/errors.ts'

/** Reads files, shows what they hold, and sends it once that is confirmed. */
export function Upload(): View {
  const sending = useSending()
  return sending ? sendingView(sending) : renderComponent(Choice, {})
}

type FileSummary = {
  files?: readonly File[]
  /** How many memories were found so far, while they are read. */
  count?: number
  found?: FoundLines
  fault?: Fault
  /** What they were taken for; undefined: nothing known. */
  reading?: string
}

function Choice(): View {
  const [looked, setLooked] = useState<FileSummary>({})
  const [session, setSession] = useState('')
  const look = async (files: readonly File[], reading?: string): Promise<void> => {
    if (files.length === 0) return
    const of = { files, ...(reading !== undefined && { reading }) }
    setLooked({ ...of, count: 0 })
    let shownAt = 0
    const onCount = (count: number): void => {
      if (performance.now() - shownAt < 200) return
      shownAt = performance.now()
      setLooked({ ...of, count })
    }
    try {
      const found = await readFiles(files, reading, onCount)
      setLooked({ files, found, reading: found.reading })
    } catch (error) {
      setLooked({ ...of, fault: faultOf(error) })
    }
  }
  const { files, found, count, fault, reading } = looked
  const isReading = count !== undefined
  const send = (): void => {
    if (found) startSending(found, session.trim())
  }
  return html`<form
    class="panel stack drop"
    onSubmit=${onSubmit(send)}
    onDragOver=${(event: DragEvent) => event.preventDefault()}
    onDrop=${(event: DragEvent) => {
      event.preventDefault()
      if (isReading) return
      try {
        void look(droppedFiles(event))
      } catch (error) {
        setLooked({ fault: toFault(error) })
      }
    }}
  >
    ${labelledControl(
      'File',
      'Drop it anywhere here, or choose it: lines, an export of a vault, or the export of another product. Nothing is sent before you have seen what it holds.',
      described =>
        html`<input
          type="file"
          multiple
          ...${described}
          disabled=${isReading}
          onChange=${(event: Event) => void look([...(event.currentTarget as HTMLInputElement).files!])}
        />`,
    )}
    ${acceptedList(fault !== undefined)}
    <p role="status" class=${found ? 'found' : ''}>
      ${isReading && `Reading: ${pluralize(count, 'memory', 'memories')} so far`} ${found?.summary}
    </p>
    ${
      found &&
      html`<ul class="quiet bullets">
        ${found.notes.map(note => html`<li key=${note}>${note}</li>`)}
      </ul>`
    }
    ${faultNote(fault)}
    ${
      files &&
      !isReading &&
      html`<div class="filters">
        ${selectField({
          label: 'It is',
          value: reading ?? '',
          onValue: name => void look(files, name),
          choices: [...(reading === undefined ? [['', 'not known'] as const] : []), ...readings],
        })}
        ${
          found?.sets.some(({ kind }) => kind === 'upload') &&
          textField({
            label: 'Session',
            value: session,
            onValue: setSession,
            maxlength: 256,
            placeholder: 'the core vault',
          })
        }
      </div>`
    }
    ${
      found &&
      html`<div class="actions">
        ${button(`Store ${countOf(found)}`, undefined, { kind: 'main' })}
      </div>`
    }
  </form>`
}

const countOf = ({ count, unit }: FoundLines): string =>
  unit === 'line' ? pluralize(count, 'line') : pluralize(count, 'memory', 'memories')

/** @throws UserError for a folder, whose files a page may not list */
export function droppedFiles({ dataTransfer }: DragEvent): File[] {
  const items = [...(dataTransfer?.items ?? [])]
  if (items.some(item => item.webkitGetAsEntry()?.isDirectory))
    throw new UserError('A folder cannot be dropped here: drop its files, or a zip of it')
  return [...(dataTransfer?.files ?? [])]
}

function faultOf(error: unknown): Fault {
  if (!(error instanceof Refusal)) return { message: 'The file cannot be read', hint: undefined }
  const { message, hint, reason } = error
  if (reason !== 'unsupported') return { message, hint }
  return { message, hint: 'What can be read is listed above. If it is one of these, say which.' }
}

const acceptedList = (isOpen: boolean): View =>
  html`<details class="stack-tight" open=${isOpen}>
    <summary>What can be read</summary>
    <ul class="quiet bullets">
      <li>
        Lines of JSON, of any number:${' '}
        <code>{"content": "…", "role": "user", "timestamp": 1746100800000}</code>
      </li>
      <li>An export of a vault, as the export below writes it</li>
      ${Object.values(formats).map(
        ({ product, file }) => html`<li key=${product}><b>${product}</b>: ${file}</li>`,
      )}
    </ul>
    <p class="quiet">
      Past sessions of Claude Code and Codex, and bundles of Open Knowledge Format, go in with${' '}
      <code>npm run import-file</code> on the computer that has them; its <code>--help</code> says
      how.
    </p>
  </details>`

function sendingView({
  found,
  state,
  share,
  left,
  totals,
  note,
  fault,
  stop,
  resume,
}: Sending): View {
  const { stored, skipped, failed, errors } = totals
  const outcome = `${formatCount(stored)} stored, ${formatCount(skipped)} already there, ${formatCount(failed)} faulty`
  const number = found.unit === 'line' ? 'Line' : 'Memory'
  return html`<div class="panel stack">
    <p><b>${found.name}</b></p>
    ${progressBar('Progress of the upload', {
      done: share,
      total: 1,
      words: [`${formatPercent(share)} of ${countOf(found)}`, state === 'sending' && left]
        .filter(Boolean)
        .join(', '),
    })}
    <p role="status">
      ${state === 'done' || totals.lines > 0 ? outcome : ''}
      ${state === 'stopped' && !fault && ' Stopped.'}
    </p>
    ${note && html`<p class="notice" role="status">${note}</p>`} ${faultNote(fault)}
    ${
      errors.length > 0 &&
      html`<ul class="fault stack-tight">
        ${errors.map(
          ({ line, error }) => html`<li key=${line}>${number} ${formatCount(line)}: ${error}</li>`,
        )}
      </ul>`
    }
    <div class="actions">
      ${state === 'sending' && button('Stop', stop)}
      ${
        state === 'stopped' &&
        html`${button('Forget it', forgetSending)} ${button('Continue', resume, { kind: 'main' })}`
      }
      ${
        state === 'done' &&
        html`${buttonLink('See the timeline', hrefTo('timeline'))}
        ${button('Upload another file', forgetSending, { kind: 'main' })}`
      }
    </div>
  </div>`
}
