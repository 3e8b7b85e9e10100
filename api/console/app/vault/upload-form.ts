import { useRef, useState } from 'preact/hooks'
import { useAction } from '#api/console/app/use-query.ts'
import { UserError } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { selectField, labelledControl, onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { faultNote } from '#api/console/app/parts/query-view.ts'
import { showToast } from '#api/console/app/toasts.ts'
import {
  uploadInChunks,
  type UploadProgress,
  type UploadKind,
} from '#api/console/app/vault/chunked-upload.ts'
import { formatBytes, formatCount, pluralize } from '#api/console/app/format.ts'

/** Uploads a file of any length, with its progress. */
export function UploadForm(): View {
  const [kind, setKind] = useState<UploadKind>('upload')
  const [session, setSession] = useState('')
  const [file, setFile] = useState<File>()
  const [delivery, setDelivery] = useState<UploadProgress>()
  const stop = useRef<AbortController>(undefined)
  const actionState = useAction()
  const send = async (): Promise<void> => {
    if (!file) throw new UserError('Choose a file first')
    const stopped = (stop.current = new AbortController())
    const result = await uploadInChunks(file, {
      kind,
      session,
      onProgress: setDelivery,
      signal: stopped.signal,
    })
    showToast(result.isStopped ? 'The upload is stopped.' : 'The file is in the vault.')
  }
  return html`<form class="panel stack" onSubmit=${onSubmit(() => actionState.run(send))}>
    <div class="filters">
      ${selectField({
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
    ${labelledControl(
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
    ${faultNote(actionState.fault)} ${delivery && file && progressView(delivery, file)}
    <div class="actions">
      ${
        actionState.isRunning &&
        html`<button type="button" class="button" onClick=${() => stop.current?.abort()}>
          Stop
        </button>`
      }
      <button class="button button-main" disabled=${actionState.isRunning}>
        ${actionState.isRunning ? 'Sending …' : 'Upload'}
      </button>
    </div>
  </form>`
}

const hints = {
  upload:
    'A line each: {"content": "…", "role": "user", "timestamp": 1746100800000}. Sent again, it adds nothing.',
  import: 'As the export below writes it. What is there already is skipped.',
}

const progressView = (progress: UploadProgress, file: File): View =>
  html`<div class="stack">
    <div class="progress">
      <progress max="1" value=${progress.fraction} aria-label="Progress of the upload"></progress>
      <span class="quiet"
        >${Math.round(progress.fraction * 100)} % of ${formatBytes(file.size)}</span
      >
    </div>
    <p role="status">
      ${pluralize(progress.lines, 'line')}: ${formatCount(progress.stored)} stored,${' '}
      ${formatCount(progress.skipped)} already there, ${formatCount(progress.failed)} faulty
    </p>
    ${
      progress.errors.length > 0 &&
      html`<ul class="fault">
        ${progress.errors.map(
          ({ line, error }) => html`<li key=${line}>Line ${formatCount(line)}: ${error}</li>`,
        )}
      </ul>`
    }
  </div>`
