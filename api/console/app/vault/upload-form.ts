import { useRef, useState } from 'preact/hooks'
import { useDoing } from '#api/console/app/asked.ts'
import { Told } from '#api/console/app/call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { choiceField, labelled, onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { faultNote } from '#api/console/app/parts/states.ts'
import { say } from '#api/console/app/said.ts'
import { deliver, type Delivery, type Kind } from '#api/console/app/vault/deliver.ts'
import { bytesOf, count, counted } from '#api/console/app/words.ts'

/** Sends a file, however long, and tells how far it is. */
export function UploadForm(): View {
  const [kind, setKind] = useState<Kind>('upload')
  const [session, setSession] = useState('')
  const [file, setFile] = useState<File>()
  const [delivery, setDelivery] = useState<Delivery>()
  const stop = useRef<AbortController>(undefined)
  const doing = useDoing()
  const send = async (): Promise<void> => {
    if (!file) throw new Told('Choose a file first')
    const stopped = (stop.current = new AbortController())
    const done = await deliver(file, {
      kind,
      session,
      onProgress: setDelivery,
      stop: stopped.signal,
    })
    say(done.stopped ? 'The upload is stopped.' : 'The file is in the vault.')
  }
  return html`<form class="panel stack" onSubmit=${onSubmit(() => doing.run(send))}>
    <div class="filters">
      ${choiceField({
        label: 'Holds',
        value: kind,
        onValue: setKind,
        choices: [
          ['upload', 'what was said'],
          ['import', 'an export of a vault'],
        ],
      })}
      ${
        kind === 'upload' &&
        textField({
          label: 'Session',
          value: session,
          onValue: setSession,
          maxlength: 256,
          placeholder: 'the core vault',
        })
      }
    </div>
    ${labelled(
      'File',
      hints[kind],
      described =>
        html`<input
          type="file"
          accept=".jsonl,.ndjson,.json,.txt"
          ...${described}
          onChange=${(event: Event) => {
            setFile((event.currentTarget as HTMLInputElement).files?.[0])
            setDelivery(undefined)
          }}
        />`,
    )}
    ${faultNote(doing.fault)} ${delivery && file && deliveryView(delivery, file)}
    <div class="actions">
      ${
        doing.busy &&
        html`<button type="button" class="button" onClick=${() => stop.current?.abort()}>
          Stop
        </button>`
      }
      <button class="button button-main" disabled=${doing.busy}>
        ${doing.busy ? 'Sending …' : 'Upload'}
      </button>
    </div>
  </form>`
}

const hints = {
  upload:
    'A line each: {"content": "…", "role": "user", "timestamp": 1746100800000}. Sent again, it adds nothing.',
  import: 'As the export below writes it. What is there already is skipped.',
}

const deliveryView = (delivery: Delivery, file: File): View =>
  html`<div class="stack">
    <div class="progress">
      <progress max="1" value=${delivery.share} aria-label="Progress of the upload"></progress>
      <span class="quiet">${Math.round(delivery.share * 100)} % of ${bytesOf(file.size)}</span>
    </div>
    <p role="status">
      ${counted(delivery.lines, 'line')}: ${count(delivery.stored)} stored,${' '}
      ${count(delivery.skipped)} already there, ${count(delivery.failed)} faulty
    </p>
    ${
      delivery.errors.length > 0 &&
      html`<ul class="fault">
        ${delivery.errors.map(
          ({ line, error }) => html`<li key=${line}>Line ${count(line)}: ${error}</li>`,
        )}
      </ul>`
    }
  </div>`
