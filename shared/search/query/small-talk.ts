import { foldText } from '#shared/search/words/writing-systems.ts'

/** Words that greet, thank, agree or ask politely, by language; a sentence of these alone asks nothing. */
const politeWords = [
  'hi hello hey hiya howdy dear there everyone all good morning evening afternoon night day days thanks thank thx ty cheers welcome bye goodbye later see you u ya soon ciao ok okay k kk sure yes yeah yep no nope nah cool nice great awesome perfect wonderful fine lovely brilliant amazing fantastic wow oh ah hmm lol haha please pls sorry much very so many a lot for the your that this it is was are am i im me my we us and but just really well again too how going doing what whats up today help helped helping time patience advance appreciate appreciated kind kindly could can would might will mind question questions another one more quick small have got let lets go on continue proceed next ahead of in now then right exactly indeed correct true understood got makes sense hope day weekend nice have great to be do know',
  'hallo guten morgen tag abend gute nacht danke vielen dank bitte schon gern gerne tschuss bis bald ja nein super toll prima klar genau ach also na wie geht es dir ihnen gehts alles gut sehr und ich du sie das ist im voraus schonen noch hab habe eine einen kurze frage mal weiter',
  'hola buenos buenas dias tardes noches gracias muchas mil por favor adios hasta luego pronto si no vale claro perfecto genial bien muy que tal como estas esta de nada antemano y todo tengo una pregunta sigue continua',
  'bonjour salut bonsoir merci beaucoup bien s il vous te plait au revoir a bientot oui non d accord parfait super genial tres ca va comment allez tu vas et de rien avance je j ai une question petite continue continuez',
  'ciao buongiorno buonasera salve grazie mille tante per favore arrivederci si no va bene perfetto ottimo come stai sta prego anticipo e tutto ho una domanda continua',
  'ola bom boa dia tarde noite obrigado obrigada muito por favor tchau ate logo sim nao ta certo perfeito otimo tudo bem como voce vai esta de nada tenho uma pergunta continue',
  'hoi dag goedemorgen dank je wel bedankt alsjeblieft doei ja nee hej tack tak cześć dziekuje prosze merhaba tesekkurler lutfen evet hayir tamam',
  'привет здравствуйте доброе утро добрый день вечер спасибо большое пожалуйста пока до свидания да нет хорошо отлично понятно ясно супер как дела у тебя вас заранее очень и всё все ладно продолжай продолжи',
  'مرحبا السلام عليكم اهلا شكرا جزيلا من فضلك نعم لا حسنا تمام جيد صباح الخير مساء كيف حالك الحال مع السلامه ممتاز اكمل تابع',
  'नमस्ते नमस्कार धन्यवाद शुक्रिया कृपया हाँ हां नहीं ठीक है अच्छा बहुत आप कैसे हैं हो जी शुभ रात्रि जारी रखें',
]

const politeWordSet: ReadonlySet<string> = new Set(
  politeWords.flatMap(words => words.split(' ').map(word => foldText(word))),
)

/** Phrases of the same kind in scripts without spaces. */
const politePhrases =
  /(?:你好|您好|谢谢|多谢|感谢|再见|早上好|晚上好|好的|好吧|是的|不是|没问题|请|麻烦|对|嗯|继续|你|您|吗|啊|呢|了|大家|非常|太好|最近|怎么样|こんにちは|こんばんは|おはよう(?:ございます)?|ありがとう(?:ございます|ございました)?|どうも|お願い(?:します|いたします)?|よろしく|はい|いいえ|すみません|元気|ですか|です|さようなら|続けて(?:ください)?|了解|なるほど|안녕(?:하세요|히)?|감사합니다|감사해요|고마워요?|고맙습니다|네|아니요|좋아요?|부탁(?:해요|합니다|드립니다)?|잘|지내세요|계속(?:해\s?주세요|해줘)?|정말|너무|สวัสดี|ขอบคุณ|ครับ|ค่ะ|[\p{P}\p{S}\s])+/gu

/**
 * Instructions about the form of an answer, and roles given to the model: no memory helps with them
 * beside a question. Each language has one pattern of what is asked to be done and one of the form.
 */
const formVerbs =
  /\b(?:answers?|answering|reply|replies|respond|responses?|keep|use|using|write|format|return|output|include|avoid|limit|be|explain|give|translate|antworte\w*|antworten|antwort|halte|verwende|benutze|schreib\w*|fasse|respon\w*|usa|utiliza|escrib\w*|manten|evita|sois|repond\w*|utilis\w*|ecri\w*|gard(?:e|ez|er)|risp\w*|usar?e?|scriv\w*|mantieni|respond\w*|escrev\w*|mantenh\w*|antwoord\w*|svar\w*|odpowiedz|yanitla|cevap\w*)\b|(?:ответ\p{L}*|отвеч\p{L}*|пиши|используй\p{L}*|اجب|اكتب|استخدم|الرد|اجابت\p{L}*|उत्तर|जवाब|लिख\p{L}*|回答|用|请|答え|書|使|返答|回答|답변|대답|작성|사용)/u
const formNouns =
  /\b(?:short|brief|briefly|concise\w*|detailed|succinct\w*|friendly|formal|polite|precise|sentences?|words|lines?|paragraphs?|bullets?|bullet points|markdown|json|xml|html|tables?|emojis?|tone|length|format|style|plain text|code blocks?|headings?|step by step|kurz|knapp|satz|satze|satzen|worte|worten|stichpunkte\w*|aufzahlung\w*|ausfuhrlich|freundlich|hoflich|breve|brevemente|corto|corta|frases?|oracion\w*|vinetas?|palabras|lista|tono|amable|conciso|concis\w*|court\w*|phrases?|puces|mots|bref|brievement|listes?|frasi|parole|elenchi|puntati|gentile|curt\w*|topicos|palavras|marcadores|kort|zinnen|woorden|meningar|zdania\w*|krotko|kisa|cumle\w*)\b|(?:кратк\p{L}*|коротк\p{L}*|предложени\p{L}*|слов|список|спис\p{L}*|маркер\p{L}*|вежлив\p{L}*|باختصار|مختصر\p{L}*|جمل\p{L}*|جمله|كلمات|نقاط|قصير\p{L}*|संक्षिप्त|संक्षेप|छोटा|वाक्य\p{L}*|शब्द\p{L}*|简短|简洁|简明|句|要点|列表|字以内|礼貌|短く|簡潔|箇条書き|文以内|文で|丁寧|짧게|간결|간단|문장|글머리|목록|친절)/u
const modelRole =
  /^(?:you are|you're|act as|pretend to be|du bist|sie sind|eres|usted es|tu es|vous etes|sei un|tu sei|voce e|ты|вы|jij bent|je bent|du ar|انت|आप|तुम|你是|您是|あなたは|당신은|너는)(?=[\s\P{L}]|.{0,24}(?:助手|アシスタント|어시스턴트|비서)).*?(?:assistants?|assistent\w*|asistente\w*|assistente\w*|expert\w*|bot|chatbot|model|modell|agent|helper|tutor|asystent\w*|помощник\p{L}*|ассистент\p{L}*|مساعد\p{L}*|सहायक|助手|助理|专家|アシスタント|어시스턴트|비서|도우미)/u

/** A question is announced, not asked. */
const announcement =
  /\b(?:(?:want|wanted|need|like|have) to (?:quickly )?ask|let me ask|quick question|one (?:more|last) question|(?:etwas|was|dich) fragen|te demander|vous demander|preguntarte|chiederti|perguntar-te|te perguntar)\b|(?:хочу|хотел|хотела)\s(?:тебя\s|вас\s)?спросить|想问|想問|請問一下|聞きたい|물어보고|اسالك|पूछना/u

/** Whether a sentence only greets, thanks or agrees, or says in which form to answer. */
export function isSmallTalk(sentence: string): boolean {
  const text = foldText(sentence.slice(0, 400))
  if (modelRole.test(text)) return true
  if (isFormInstruction(text)) return true
  if (announcement.test(text) && !/[?？؟:：]/u.test(text)) return true
  const words = text.replace(politePhrases, ' ').match(/[\p{L}\p{N}\p{M}]+/gu)
  return !words || words.every(word => politeWordSet.has(word))
}

/** Of a folded sentence. People who tell of themselves ("I use a short rope") give no instruction. */
const isFormInstruction = (text: string): boolean =>
  text.length <= 200 &&
  !/[?？؟]/u.test(text) &&
  !/^(?:i|we|my|our|he|she|they|ich|wir|mein\w*|yo|mi|je|mon|ma|nous|io|eu|meu|minha|я|мы|мой|моя)[\s'’]/u.test(
    text,
  ) &&
  formVerbs.test(text) &&
  formNouns.test(text)
