import { useState } from 'preact/hooks'
import { canWrite } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { DownloadButton } from '#api/console/app/parts/download-button.ts'
import { checkboxField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { exportFile } from '#api/console/app/vault/export.ts'
import { UploadForm } from '#api/console/app/vault/upload-form.ts'

/** Uploads a file into the vault, and exports the vault as a file. */
export function Files(): View {
  return page({
    title: 'Upload and export',
    description: 'A vault is a file of JSON lines whenever you want it to be.',
    children: html`<div class="stack-wide">
      ${canWrite() && section('Upload', renderComponent(UploadForm, {}))}
      ${section('Export', renderComponent(Export, {}))}
    </div>`,
  })
}

function Export(): View {
  const [vectors, setVectors] = useState(false)
  const [sessions, setSessions] = useState(true)
  return html`<div class="panel stack">
    <p class="quiet">
      Every memory with its time, tier and lineage; it can be imported again without loss.
    </p>
    ${checkboxField({ label: 'With sessions', value: sessions, onValue: setSessions })}
    ${checkboxField({
      label: 'With vectors',
      value: vectors,
      onValue: setVectors,
      hint: 'A much larger file that needs no embedding when it is imported.',
    })}
    <div class="actions">
      ${renderComponent(DownloadButton, {
        label: 'Download export',
        isPrimary: true,
        download: onBytes => exportFile({ vectors, sessions, onBytes }),
      })}
    </div>
  </div>`
}
