import { call } from '#api/console/app/api-call.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { downloadButton } from '#api/console/app/parts/buttons.ts'
import { confirmButton } from '#api/console/app/parts/dialogs.ts'
import { checkboxField, useFields } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { Documents } from '#api/console/app/vault/documents.ts'
import { exportFile } from '#api/console/app/vault/export.ts'
import { Upload } from '#api/console/app/vault/upload/upload.ts'

/** Uploads a file into the vault, and exports the vault as a file. */
export const Files = (): View =>
  page({
    title: 'Upload and export',
    description: 'A vault is a file of JSON lines whenever you want it to be.',
    children: html`${section('Documents', renderComponent(Documents, {}))}
    ${canWrite() && section('Upload', renderComponent(Upload, {}))}
    ${section('Export', renderComponent(Export, {}))}
    ${canWrite() && section('Empty the vault', clearVault())}`,
  })

const clearVault = (): View =>
  html`<div class="panel section-head">
    <p>Core, reflections and every session. The key stays.</p>
    ${confirmButton('Delete everything', {
      title: 'Delete everything in this vault?',
      message:
        'Every memory, reflection and session of this key goes at once and cannot be brought back. An export keeps a copy.',
      confirmationText: 'delete',
      act: () => call('DELETE /v1/memory'),
      done: 'The vault is empty.',
    })}
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
