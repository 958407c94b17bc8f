import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** Sends frames to a plotter, which confirms each. Each leaves in one piece. */
public class Main {
    private static void plot(ServerSocket listener) {
        try (Socket peer = listener.accept()) {
            DataInputStream in = new DataInputStream(peer.getInputStream());
            DataOutputStream out = new DataOutputStream(peer.getOutputStream());
            for (int length = in.readInt(); length > 0; length = in.readInt()) {
                out.writeByte(in.readNBytes(length).length);
            }
        } catch (IOException problem) {
            throw new java.io.UncheckedIOException(problem);
        }
    }

    public static void main(String[] words) throws IOException, InterruptedException {
        ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Thread plotter = new Thread(() -> plot(listener));
        plotter.start();
        int total = 0;
        try (Socket socket = new Socket(listener.getInetAddress(), listener.getLocalPort())) {
            DataOutputStream out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream()));
            DataInputStream in = new DataInputStream(socket.getInputStream());
            for (int n = 1; n <= 32; n++) {
                out.writeInt(n);
                out.write(new byte[n]);
                out.flush();
                total += in.readByte();
            }
            out.writeInt(0);
            out.flush();
        }
        plotter.join();
        listener.close();
        System.out.println("total " + total);
    }
}
