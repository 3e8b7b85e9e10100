import { useState } from 'preact/hooks'
import { call, clientWith } from '#api/console/app/api-call.ts'
import { useBulk } from '#api/console/app/bulk.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { formatCount, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { timeView } from '#api/console/app/parts/chips.ts'
import { confirmButton } from '#api/console/app/parts/dialogs.ts'
import { labelledControl } from '#api/console/app/parts/fields.ts'
import { editableList } from '#api/console/app/parts/notes.ts'
import { usePages } from '#api/console/app/queries.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'
import { droppedFiles } from '#api/console/app/vault/upload/upload.ts'
import type { ListedFile } from '#api/contract/generated/types.ts'
import { sendDocument, type SentDocument } from '#api/import/send/send-document.ts'

/** Stores documents that are dropped, lists those of the vault, and removes them. */
export function Documents(): View {
  const user = useVaultUser()
  const list = usePages('GET /v1/memory/files', { query: { limit: 20 } })
  const { run, isRunning, view } = useBulk<File>(({ name }) => name)
  const [sent, setSent] = useState<readonly SentDocument[]>([])
  const send = (files: readonly File[]): void => {
    setSent([])
    void run({
      items: files,
      act: async file =>
        sendDocument(
          clientWith({ user }),
          { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()) },
          { signal: undefined, onRetry: () => {} },
        ),
      onDone: done => {
        setSent(done.map(([, document]) => document))
        list.refetch()
      },
    })
  }
  return html`${
    canWrite() &&
    html`<div
      class="panel stack drop"
      onDragOver=${(event: DragEvent) => event.preventDefault()}
      onDrop=${(event: DragEvent) => {
        event.preventDefault()
        try {
          if (!isRunning) send(droppedFiles(event))
        } catch (error) {
          // A folder.
          showToast((error as Error).message)
        }
      }}
    >
      ${labelledControl(
        'Documents',
        'Drop them anywhere here, or choose them: PDF, DOCX, PPTX, XLSX, HTML, Markdown, mail, CSV or text. Their text is stored at once, page by page; the same name again is a newer version.',
        described =>
          html`<input
            type="file"
            multiple
            ...${described}
            disabled=${isRunning}
            onChange=${(event: Event) => send([...(event.currentTarget as HTMLInputElement).files!])}
          />`,
      )}
      ${view}
      <div role="status">
        <ul class="quiet bullets">
          ${sent.map(document => html`<li key=${document.file_id}>${describe(document)}</li>`)}
        </ul>
      </div>
    </div>`
  }
  ${editableList(list, {
    what: 'documents',
    empty: ['No documents', 'What is dropped above is listed here.'],
    key: ({ file_id: id, session_id: session }) => JSON.stringify([id, session]),
    main: documentView,
    actions: document => (canWrite() ? [removeButton(document, list.refetch)] : []),
  })}`
}

function describe({
  name,
  stored,
  skipped,
  replaced,
  failed,
  left_out: leftOut,
}: SentDocument): string {
  const counts = [
    `${formatCount(stored)} stored`,
    skipped > 0 && `${formatCount(skipped)} already there`,
    replaced > 0 && `${formatCount(replaced)} of an earlier version removed`,
    failed > 0 && `${formatCount(failed)} refused by the policy`,
    ...leftOut.map(({ what, count }) => `left out: ${what}: ${formatCount(count)}`),
  ]
  return `${name}: ${counts.filter(Boolean).join(', ')}`
}

const documentView = ({
  name,
  session_id: session,
  memories,
  pages,
  stored_at: at,
}: ListedFile): View =>
  html`<p class="row-title">${name}</p>
    <p class="quiet">
      ${pluralize(memories, 'memory', 'memories')}${pages > 0 && ` of ${pluralize(pages, 'page')}`}
      ${session !== null && ` in the session ${session}`}, stored ${timeView(at)}
    </p>`

const removeButton = ({ file_id: id, name, memories }: ListedFile, onRemoved: () => void): View =>
  confirmButton('Remove', {
    about: name,
    title: `Remove ${name}?`,
    message: `${pluralize(memories, 'memory', 'memories')} of it will be gone for good.`,
    act: async () => {
      await call('DELETE /v1/memory/files', { query: { file_id: id } })
      onRemoved()
    },
  })
