import { useState } from 'preact/hooks'
import { useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { currentCredential, setCredential, maskKey, canWrite } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { selectField, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { secretDialog } from '#api/console/app/parts/secret.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { AccountEvents } from '#api/console/app/vault/account-events.ts'
import { MemoryKeys } from '#api/console/app/vault/memory-keys.ts'
import { ProviderKeys } from '#api/console/app/vault/provider-keys.ts'

type OpenDialog = 'mint' | 'rotate' | 'clear'
type Minted = { key: string; rotated: boolean; external_id?: string }

/** Lists and creates Memory Keys, and clears the vault. */
export function Keys(): View {
  const [open, setOpen] = useState<OpenDialog>()
  const [minted, setMinted] = useState<Minted>()
  const [turn, setTurn] = useState(0)
  const { owner } = currentCredential()!
  const close = (): void => setOpen(undefined)
  // Only now: the view is remounted for another key.
  const confirmNewKey = (): void => {
    setMinted(undefined)
    setTurn(turn + 1)
    if (minted?.rotated) setCredential({ ...currentCredential()!, key: minted.key })
  }
  return page({
    title: 'Keys',
    description: 'One key opens one vault.',
    children: html`<div class="stack-wide">
      ${section(
        'Memory Keys',
        html`<div class="panel stack">
          <p>This tab uses <code>${maskKey(currentCredential()!)}</code>.</p>
          <div class="actions">
            <button type="button" class="button" onClick=${() => setOpen('rotate')}>
              Rotate this key
            </button>
            <button type="button" class="button button-main" onClick=${() => setOpen('mint')}>
              New key with a vault of its own
            </button>
          </div>
          ${
            owner
              ? renderComponent(MemoryKeys, { turn })
              : html`<p class="quiet">
                  It opens this vault alone. All keys and what concerns the account are shown to the
                  key that was made with it.
                </p>`
          }
        </div>`,
      )}
      ${owner && section('Provider keys', renderComponent(ProviderKeys, {}))}
      ${owner && section('What was done to the account', renderComponent(AccountEvents, {}))}
      ${
        canWrite() &&
        section(
          'Empty the vault',
          html`<div class="panel stack">
            <p class="quiet">Core, reflections and every session. The key stays.</p>
            <div class="actions">
              <button type="button" class="button button-danger" onClick=${() => setOpen('clear')}>
                Delete everything
              </button>
            </div>
          </div>`,
        )
      }
      ${open === 'mint' && renderComponent(MintForm, { onClose: close, onMinted: setMinted })}
      ${open === 'rotate' && renderComponent(RotateForm, { onClose: close, onMinted: setMinted })}
      ${open === 'clear' && clearVaultDialog(close)}
      ${
        minted &&
        secretDialog({
          title: 'Your new key',
          explanation: explainMinted(minted),
          secret: minted.key,
          onClose: confirmNewKey,
        })
      }
    </div>`,
  })
}

function explainMinted({ rotated, external_id }: Minted): string {
  if (rotated)
    return 'It opens the vault you are in; the old key stops working. It is shown only now.'
  if (external_id === undefined)
    return 'It opens an empty vault of its own, in the same account. It is shown only now.'
  return `It opens the vault of user ${external_id}. POST /v1/keys with this id shows it again.`
}

const clearVaultDialog = (onClose: () => void): View =>
  confirmDialog({
    title: 'Delete everything in this vault?',
    message: html`<p>
      Every memory, reflection and session of this key goes at once and cannot be brought back. An
      export keeps a copy.
    </p>`,
    verb: 'Delete everything',
    confirmationText: 'delete',
    action: async () => {
      await call('DELETE /v1/memory')
      showToast('The vault is empty.')
    },
    onClose,
  })

type FormProps = { onClose: () => void; onMinted: (minted: Minted) => void }

function MintForm({ onClose, onMinted }: FormProps): View {
  const [name, setName] = useState('')
  const [until, setUntil] = useState('')
  const [user, setUser] = useState('')
  const actionState = useAction()
  return dialogForm({
    title: 'New key',
    verb: 'Create',
    actionState,
    onClose,
    act: async () => {
      const expires_at = until ? new Date(`${until}T23:59:59`).toISOString() : undefined
      const body = {
        ...(name && { name }),
        ...(expires_at && { expires_at }),
        ...(user.trim() && { external_id: user }),
      }
      onMinted({ ...(await call('POST /v1/keys', { body })), rotated: false })
    },
    fields: html`<div class="stack">
      ${textField({ label: 'Name', value: name, onValue: setName, maxlength: 200, placeholder: 'New Key' })}
      ${
        currentCredential()!.owner &&
        textField({
          label: 'Your id of the user',
          value: user,
          onValue: setUser,
          maxlength: 256,
          hint: 'A user who has a key already gets that one.',
        })
      }
      ${textField({
        label: 'Valid until',
        type: 'date',
        value: until,
        onValue: setUntil,
        hint: 'Empty: for good.',
      })}
    </div>`,
  })
}

function RotateForm({ onClose, onMinted }: FormProps): View {
  const [grace, setGrace] = useState('0')
  const actionState = useAction()
  return dialogForm({
    title: 'Rotate this key',
    verb: 'Rotate',
    actionState,
    onClose,
    act: async () => {
      const body = { grace_seconds: Number(grace) }
      onMinted({ ...(await call('POST /v1/keys/rotate', { body })), rotated: true })
    },
    fields: selectField({
      label: 'The old key works',
      value: grace,
      onValue: setGrace,
      choices: [
        ['0', 'no longer'],
        ['3600', 'for another hour'],
        ['86400', 'for another day'],
      ],
      hint: 'The vault and everything in it stay. This tab goes on with the new key.',
    }),
  })
}
