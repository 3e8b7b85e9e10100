import { useState } from 'preact/hooks'
import { VaultError } from '#api/client/client.ts'
import { call, pollOperation, UserError } from '#api/console/app/api-call.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { formatBytes, formatCount, formatPercent } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { downloadButton } from '#api/console/app/parts/buttons.ts'
import {
  checkboxField,
  form,
  labelledControl,
  selectField,
  textField,
  useFields,
} from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { progressBar } from '#api/console/app/parts/notes.ts'
import { exportFile } from '#api/console/app/vault/export.ts'
import type { ImportVaultAnswer, LineError, UploadAnswer } from '#api/contract/generated/types.ts'

/** Uploads a file into the vault, and exports the vault as a file. */
export const Files = (): View =>
  page({
    title: 'Upload and export',
    description: 'A vault is a file of JSON lines whenever you want it to be.',
    children: html`${canWrite() && section('Upload', renderComponent(Upload, {}))}
    ${section('Export', renderComponent(Export, {}))}`,
  })

type Outcome = { stored: number; skipped: number; failed: number; errors?: LineError[] }
/** What a file holds, and where it goes. */
type Target = { kind: 'upload' | 'import'; session: string }
type Progress = { fraction: number; outcome?: Outcome }

const hints = {
  upload:
    'A line each: {"content": "…", "role": "user", "timestamp": 1746100800000}. Sent again, it adds nothing.',
  import: 'As the export below writes it. What is there already is skipped.',
}

/** Sends one file as one operation, whose progress it shows. */
function Upload(): View {
  const { fields, of } = useFields<Target>({ kind: 'upload', session: '' })
  const [file, setFile] = useState<File>()
  const [progress, setProgress] = useState<Progress>()
  const send = async (): Promise<void> => {
    if (!file) throw new UserError('Choose a file first')
    setProgress({ fraction: 0 })
    const outcome = await sendFile(await file.text(), fields, fraction =>
      setProgress({ fraction }),
    ).catch((error: unknown) => {
      setProgress(undefined)
      throw error
    })
    setProgress({ fraction: 1, outcome })
  }
  const choose = (event: Event): void => {
    setFile((event.currentTarget as HTMLInputElement).files?.[0])
    setProgress(undefined)
  }
  return form({
    verb: 'Upload',
    kind: 'main',
    act: send,
    children: html`<div class="filters">
        ${selectField({
          label: 'Holds',
          ...of('kind'),
          choices: [
            ['upload', 'what was said'],
            ['import', 'an export of a vault'],
          ],
        })}
        ${
          fields.kind === 'upload' &&
          textField({
            label: 'Session',
            ...of('session'),
            maxlength: 256,
            placeholder: 'the core vault',
          })
        }
      </div>
      ${labelledControl(
        'File',
        `${hints[fields.kind]} Larger files go in with “npm run upload-file”, those of other products with “npm run import-file”.`,
        described =>
          html`<input
            type="file"
            accept=".jsonl,.ndjson,.json,.txt"
            ...${described}
            onChange=${choose}
          />`,
      )}
      ${progress && file && progressView(progress, file)}`,
  })
}

async function sendFile(
  body: string,
  { kind, session }: Target,
  onFraction: (fraction: number) => void,
): Promise<Outcome> {
  const prefer = 'respond-async'
  try {
    const answer =
      kind === 'upload'
        ? await call('POST /v1/memory/upload', {
            body,
            headers: { prefer, ...(session && { 'x-session-id': session }) },
          })
        : await call('POST /v1/memory/import', { body, headers: { prefer } })
    const done =
      answer.status === 'processing'
        ? await pollOperation<UploadAnswer | ImportVaultAnswer>(answer.operation_id, onFraction)
        : answer
    if ('stats' in done) return { ...done.stats, ...done }
    return { ...done, stored: done.imported + done.replaced }
  } catch (error) {
    // No line of the file can be stored.
    if (!(error instanceof VaultError) || !error.errors) throw error
    const failed = body.trimEnd().split('\n').length
    return { stored: 0, skipped: 0, failed, errors: error.errors }
  }
}

const progressView = ({ fraction, outcome }: Progress, file: File): View =>
  html`<div class="stack">
    ${progressBar('Progress of the upload', {
      done: fraction,
      total: 1,
      words: `${formatPercent(fraction)} of ${formatBytes(file.size)}`,
    })}
    <p role="status">
      ${outcome && `${formatCount(outcome.stored)} stored, ${formatCount(outcome.skipped)} already there, ${formatCount(outcome.failed)} faulty`}
    </p>
    ${
      outcome?.errors &&
      outcome.errors.length > 0 &&
      html`<ul class="fault stack-tight">
        ${outcome.errors.map(
          ({ line, error }) => html`<li key=${line}>Line ${formatCount(line)}: ${error}</li>`,
        )}
      </ul>`
    }
  </div>`

function Export(): View {
  const { fields, of } = useFields({ vectors: false, sessions: true })
  return html`<div class="panel stack">
    <p class="quiet">
      Every memory with its time, tier and lineage; it can be imported again without loss.
    </p>
    ${checkboxField({ label: 'With sessions', ...of('sessions') })}
    ${checkboxField({
      label: 'With vectors',
      ...of('vectors'),
      hint: 'A much larger file that needs no embedding when it is imported.',
    })}
    <div class="actions">
      ${downloadButton({
        label: 'Download export',
        kind: 'main',
        download: onBytes => exportFile({ ...fields, onBytes }),
      })}
    </div>
  </div>`
}
