//! Locks in a web server: one handler refuses when the lock is busy, one waits for a while.
//!
//! ```sh
//! cargo run --example axum_handler
//! ```
//!
//! It opens no port. `main` plays another replica, which has the locks, and sends the requests.

use std::{error::Error, pin::pin, time::Duration};

use advisory::{LockManager, MemoryBackend};
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Path, State},
    http::{Request, StatusCode},
    response::{IntoResponse, Response},
    routing::post,
};
use futures::poll;
use tower::ServiceExt;

/// The state of the application: cheap to clone, as the manager is.
#[derive(Clone)]
struct App {
    locks: LockManager,
    patience: Duration,
}

fn router(app: App) -> Router {
    Router::new()
        .route("/reports/{id}", post(make_report))
        .route("/documents/{id}", post(update_document))
        .with_state(app)
}

/// One report at a time: whoever asks for one that is being made is told so.
async fn make_report(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<&'static str, Refusal> {
    let lock = app.locks.named(format!("report:{id}"));
    let made = lock.try_with(async || "made").await?;
    made.ok_or(Refusal::Busy)
}

/// Every update counts, so each of them waits for its turn, but not for ever.
async fn update_document(
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<&'static str, Refusal> {
    let lock = app.locks.named(format!("document:{id}"));
    let updated = lock.with_timeout(app.patience, async || "updated").await?;
    Ok(updated)
}

/// Why a request was refused.
enum Refusal {
    Busy,
    Failed(advisory::Error),
}

impl From<advisory::Error> for Refusal {
    fn from(error: advisory::Error) -> Self {
        Self::Failed(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Busy => (StatusCode::CONFLICT, "it is being made").into_response(),
            Self::Failed(error) => {
                // It names the lock and its holders, which is for the log and not for outsiders.
                log(&error);
                match error {
                    advisory::Error::Timeout { .. } => {
                        (StatusCode::SERVICE_UNAVAILABLE, "busy, try again later").into_response()
                    }
                    _ => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                }
            }
        }
    }
}

/// An error's text does not repeat its causes, so they are logged with it.
fn log(error: &dyn Error) {
    eprint!("{error}");
    let mut next = error.source();
    while let Some(cause) = next {
        eprint!(": {cause}");
        next = cause.source();
    }
    eprintln!();
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = MemoryBackend::new();
    let elsewhere = LockManager::new(cluster.clone());
    let locks = LockManager::new(cluster.clone());
    let server = |patience| {
        router(App {
            locks: locks.clone(),
            patience,
        })
    };
    let hurried = server(Duration::from_millis(20));
    let patient = server(Duration::from_secs(60));

    // Busy: 409.
    let report = elsewhere.named("report:may").lock().await?;
    let (status, _) = send(&hurried, "/reports/may").await?;
    assert_eq!(status, StatusCode::CONFLICT);

    // Free again: 200.
    report.release().await?;
    let (status, _) = send(&hurried, "/reports/may").await?;
    assert_eq!(status, StatusCode::OK);

    // Busy for longer than the handler waits: 503, and the log says by whom.
    let document = elsewhere.named("document:7").lock().await?;
    let (status, text) = send(&hurried, "/documents/7").await?;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(!text.contains("session"));

    // Freed while the handler waits: 200.
    let mut waiting = pin!(send(&patient, "/documents/7"));
    assert!(poll!(&mut waiting).is_pending());
    assert_eq!(cluster.waiters(document.key()).len(), 1);
    document.release().await?;
    let (status, _) = waiting.await?;
    assert_eq!(status, StatusCode::OK);
    Ok(())
}

/// Hands a request to the server, without a network between them.
async fn send(server: &Router, path: &str) -> Result<(StatusCode, String), Box<dyn Error>> {
    let request = Request::post(path).body(Body::empty())?;
    let response = server.clone().oneshot(request).await?;
    let status = response.status();
    let body = to_bytes(response.into_body(), 1024).await?;
    let text = String::from_utf8(body.to_vec())?;
    println!("POST {path}: {status}: {text}");
    Ok((status, text))
}
