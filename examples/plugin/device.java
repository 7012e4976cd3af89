package generated_program;

import com.pulumi.Context;
import com.pulumi.Pulumi;
import com.pulumi.core.Output;
import com.pulumi.gatehouse.Device;
import com.pulumi.gatehouse.DeviceArgs;
import java.util.List;
import java.util.ArrayList;
import java.util.Map;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Paths;

public class App {
    public static void main(String[] args) {
        Pulumi.run(App::stack);
    }

    public static void stack(Context ctx) {
        var gate = new Device("gate", DeviceArgs.builder()
            .device("02:00:00:00:0a:01")
            .name("gate")
            .status("accepted")
            .build());

    }
}
